package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/examples/internal/backend"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) {
	logging.Disable() // as main does
	redistest.Main(m)
}

// small is a sale for a test.
var small = crowd{units: 10, buyers: 40, requests: 400, connections: 20}

// TestTheProgram runs it as its reader would, on each kind of Redis.
func TestTheProgram(t *testing.T) {
	t.Parallel()
	sale := fmt.Sprintf("-units=20 -buyers=100 -connections=50 -requests=%d", redistest.Ops(5_000))
	for name, args := range map[string]string{
		"embedded":   "-units=20 -buyers=100 -connections=50 -requests=200",
		"paid":       "-units=20 -buyers=100 -connections=50 -requests=200 -pay",
		"standalone": sale + " -redis " + redistest.Standalone(t).AdminURL(),
		"cluster":    sale + " -redis " + redistest.Cluster(t).Nodes()[1].AdminURL(),
		"paid there": sale + " -pay -redis " + redistest.Standalone(t).AdminURL(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := run(t.Context(), strings.Fields(args), &out); err != nil {
				t.Errorf("the program ended with %v, want no error:\n%s", err, out.String())
			}
			for _, f := range frameworks {
				if !strings.Contains(out.String(), fmt.Sprintf("%-9s 20 sold, ", f.title)) {
					t.Errorf("the program did not say that %s sold 20, want it in\n%s", f.title, out.String())
				}
			}
			if strings.Count(out.String(), " 0 duplicates, ") != len(frameworks) || !strings.Contains(out.String(), "sold once") {
				t.Errorf("the program said\n%s\nwant 0 duplicates on each framework, and sold once", out.String())
			}
		})
	}
}

// TestTheKeysOfASale: each sale is one key that expires, and all sales of an item
// are in its slot.
func TestTheKeysOfASale(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		for _, f := range frameworks {
			if err := sell(t.Context(), rdb, prefix, f, small, io.Discard); err != nil {
				t.Errorf("%s: got %v, want no error", f.name, err)
			}
		}
		keys, err := backend.Keys(t.Context(), admin, prefix+":*")
		if err != nil || len(keys) != len(frameworks) {
			t.Fatalf("got the keys %q, %v, want %d", keys, err, len(frameworks))
		}
		slots := map[int64]bool{}
		for _, key := range keys {
			if left := admin.PTTL(t.Context(), key).Val(); left <= 0 || left > lasts {
				t.Errorf("%s has %v to live, want up to %v", key, left, lasts)
			}
			slots[admin.ClusterKeySlot(t.Context(), key).Val()] = true
		}
		if len(slots) != 1 {
			t.Errorf("%q are in %d slots, want one", keys, len(slots))
		}
	}, redistest.OnStandalone, redistest.OnCluster)
}

// TestABadSaleIsFound has gates sell otherwise than they should.
func TestABadSaleIsFound(t *testing.T) { //nolint:tparallel // one after the other: each is a crowd
	t.Parallel()
	atOnce := gate.ReserveOptions{Confirm: true}
	byItem, byBuyer := gate.ByParam("item"), gate.ByHeader(buyerHeader)
	// When somebody is refused for the first time, something happens to the stock.
	then := func(happens func(*stock.Stock) error) func(*testing.T, *stock.Stock) gate.Gate {
		return func(t *testing.T, s *stock.Stock) gate.Gate {
			var once sync.Once
			g := gate.Reserve(s, byItem, byBuyer, &atOnce)
			return entering(func(r gate.Request) gate.Pass {
				pass := g.Enter(r)
				if pass.Reply != nil && strings.Contains(string(pass.Reply.Body), "#sold-out") {
					once.Do(func() {
						if err := happens(s); err != nil {
							t.Error(err)
						}
					})
				}
				return pass
			})
		}
	}
	for name, c := range map[string]struct { //nolint:paralleltest // see above
		gate func(*testing.T, *stock.Stock) gate.Gate
		want []string
	}{
		"nobody is refused": {func(*testing.T, *stock.Stock) gate.Gate {
			return entering(func(gate.Request) gate.Pass { return gate.Pass{} })
		}, []string{"400 of 10 were sold, 360 of them to buyers who had one", "10 are left, 0 held and 0 sold"}},
		"nobody is known": {func(_ *testing.T, s *stock.Stock) gate.Gate {
			var n atomic.Int64
			each := func(gate.Request) (string, error) { return fmt.Sprint(n.Add(1)), nil }
			return gate.Reserve(s, byItem, each, &atOnce)
		}, []string{"the stock says {", "the stock knows 10 buyers who never asked"}},
		"a buyer is served again": {func(_ *testing.T, s *stock.Stock) gate.Gate {
			return gate.Reserve(s, byItem, byBuyer, &gate.ReserveOptions{Confirm: true, ID: byBuyer})
		}, []string{"80 of 10 were sold, 70 of them to buyers who had one"}},
		"a unit too many": {then(func(s *stock.Stock) error {
			return s.Restock(t.Context(), item, "1", 1)
		}), []string{"11 of 10 were sold, 0 of them", "of 11 units"}},
		"a unit is taken back": {then(func(s *stock.Stock) error {
			for b, err := range s.Buyers(t.Context(), item) {
				if err != nil {
					return err
				}
				own, err := s.Resume(item, b.Buyer, b.ID, nil)
				if err != nil {
					return err
				}
				return own.Cancel(t.Context())
			}
			return nil
		}), []string{"11 of 10 were sold"}},
		"the item is opened anew": {then(func(s *stock.Stock) error {
			_, err := s.Forget(t.Context(), item)
			if err == nil {
				_, err = s.Open(t.Context(), item, int64(small.units), time.Now().Add(lasts))
			}
			return err
		}), []string{"of 10 were sold"}},
		"half are not decided": {func(_ *testing.T, s *stock.Stock) gate.Gate {
			var n atomic.Int64
			g := gate.Reserve(s, byItem, byBuyer, &atOnce)
			return entering(func(r gate.Request) gate.Pass {
				if n.Add(1)%2 == 0 {
					return gate.Pass{Reply: &gate.Reply{Status: 503}}
				}
				return g.Enter(r)
			})
		}, []string{"these answers: map[503:200]"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := backend.Embed()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			st, err := store.Open(s.Redis, &store.Options{Budget: time.Minute}) // the machine may be busy
			if err != nil {
				t.Fatal(err)
			}
			phones, err := stock.New(st, "phones", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := phones.Open(t.Context(), item, int64(small.units), time.Now().Add(lasts)); err != nil {
				t.Fatal(err)
			}
			shop, err := newShop(st, phones, c.gate(t, phones))
			if err != nil {
				t.Fatal(err)
			}
			err = play(t.Context(), shop, frameworks[0], small, io.Discard)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nwant %q", err, want)
				}
			}
		})
	}
}

type entering func(gate.Request) gate.Pass

func (f entering) Enter(r gate.Request) gate.Pass { return f(r) }

// TestCompare changes one thing at a time in what a good sale told, and what the
// stock has of it.
func TestCompare(t *testing.T) {
	t.Parallel()
	c := crowd{units: 2, buyers: 3, requests: 6}
	type buyers = map[string]stock.Buyer
	ann, bob := nameOf("ann"), nameOf("bob")
	for want, change := range map[string]func(t *tally, l *stock.Level, known buyers){
		"":                               func(*tally, *stock.Level, buyers) {},
		"7 answers to 3 buyers":          func(t *tally, _ *stock.Level, _ buyers) { t.add("ann", yours) },
		"6 answers to 4 buyers":          func(t *tally, _ *stock.Level, _ buyers) { t.told["nil"] = told{} },
		"map[500:1]":                     func(t *tally, _ *stock.Level, _ buyers) { t.add("ann", "500") },
		"3 of 2 were sold":               func(t *tally, _ *stock.Level, _ buyers) { t.told["eve"] = told{got: 1, yours: 1} },
		"1 of 2 were sold":               func(t *tally, _ *stock.Level, _ buyers) { t.told["ann"] = told{soldOut: 2} },
		"ann was told {got:1 yours:0":    func(t *tally, _ *stock.Level, _ buyers) { t.told["ann"] = told{got: 1, soldOut: 1} },
		"eve was told {got:0 yours:1":    func(t *tally, _ *stock.Level, _ buyers) { t.told["eve"] = told{yours: 1, soldOut: 1} },
		"of 3 units":                     func(_ *tally, l *stock.Level, _ buyers) { l.Units++ },
		"1 are left":                     func(_ *tally, l *stock.Level, _ buyers) { l.Left++ },
		"1 held":                         func(_ *tally, l *stock.Level, _ buyers) { l.Held++ },
		"and 1 sold":                     func(_ *tally, l *stock.Level, _ buyers) { l.Sold-- },
		"ann was told {got:1 yours:1":    func(_ *tally, _ *stock.Level, known buyers) { delete(known, ann) },
		"Quantity:2 Sold:true":           func(_ *tally, _ *stock.Level, known buyers) { known[ann] = stock.Buyer{Quantity: 2, Sold: true} },
		"Quantity:1 Sold:false":          func(_ *tally, _ *stock.Level, known buyers) { known[ann] = stock.Buyer{Quantity: 1} },
		"eve was told {got:0 yours:0":    func(_ *tally, _ *stock.Level, known buyers) { known[nameOf("eve")] = known[ann] },
		"knows 1 buyers who never asked": func(_ *tally, _ *stock.Level, known buyers) { known["nil"] = known[ann] },
		"2 of 2 were sold, 1 of them to": func(t *tally, _ *stock.Level, known buyers) {
			t.told["ann"], t.told["bob"] = told{got: 2}, told{soldOut: 2}
			delete(known, bob)
		},
	} {
		answers := &tally{told: map[string]told{"ann": {got: 1, yours: 1}, "bob": {got: 1, yours: 1}, "eve": {soldOut: 2}}}
		level := stock.Level{Units: 2, Sold: 2}
		known := buyers{ann: {Quantity: 1, Sold: true}, bob: {Quantity: 1, Sold: true}}
		change(answers, &level, known)
		err := c.compare(answers, level, known)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestProgress: a bar that is drawn anew for those who watch, and lines for those
// who do not.
func TestProgress(t *testing.T) {
	t.Parallel()
	for live, want := range map[bool]string{
		false: "Gin       2 of 8 answered, 1 sold\nGin       4 of 8 answered, 1 sold\n" +
			"Gin       6 of 8 answered, 1 sold\nGin       8 of 8 answered, 1 sold\n",
		true: "100 %, 1 sold\n",
	} {
		var out bytes.Buffer
		p := newProgress(&out, "Gin", 8)
		if p.live {
			t.Error("a buffer is taken for a terminal, want it taken for none")
		}
		p.live = live
		for i := range 8 {
			p.answered(i == 0)
		}
		p.end()
		if got := out.String(); !live && got != want || live && (!strings.HasSuffix(got, want) ||
			strings.Count(got, "\r") != 8 || strings.Count(got, "\n") != 1 || strings.Count(got, "█") != 5*(1+2+3+4+5+6+7+8)) {
			t.Errorf("live %t: got %q, want %q, behind a bar that was drawn eight times if it is live",
				live, got, want)
		}
	}
}

// TestRunSaysWhatIsWrong of the arguments, and of a sale that is interrupted.
func TestRunSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-units=0":                   "-units <= -buyers",
		"-units=3 -buyers=2":         "-units <= -buyers",
		"-requests=999":              "-units <= -buyers",
		"-connections=0":             "a connection at least",
		"-framework=rails":           `"rails": use one of nethttp, gin, echo, fiber`,
		"-redis=redis://localhost:1": "no answer from Redis",
	} {
		if err := run(t.Context(), strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// TestAnInterruptedSaleLeavesNoKeys, and says that it is no sale.
func TestAnInterruptedSaleLeavesNoKeys(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out := writing(func(text string) {
		if strings.HasPrefix(text, "Gin") {
			interrupt()
		}
	})
	err := run(ctx, []string{"-redis", srv.AdminURL(), "-requests=1000", "-connections=20"}, out)
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "Gin: ") {
		t.Errorf("got %v, want %v while Gin sold", err, context.Canceled)
	}
	if keys, err := backend.Keys(t.Context(), srv.Admin(t), "*"); err != nil || len(keys) > 0 {
		t.Errorf("the sale left the keys %q, %v, want none", keys, err)
	}
}

type writing func(string)

func (f writing) Write(text []byte) (int, error) {
	f(string(text))
	return len(text), nil
}

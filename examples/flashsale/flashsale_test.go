package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
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
			for _, part := range []string{"\n20 sold, ", " 0 duplicates, ", "sold once"} {
				if !strings.Contains(out.String(), part) {
					t.Errorf("the program said\n%s\nwant %q in it", out.String(), part)
				}
			}
		})
	}
}

// TestTheKeysOfASale: each sale is one key that expires, and all sales of an item
// are in its slot.
func TestTheKeysOfASale(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		for _, name := range []string{"monday", "tuesday"} {
			if err := sell(t.Context(), rdb, prefix, name, small, io.Discard); err != nil {
				t.Errorf("%s: got %v, want no error", name, err)
			}
		}
		keys, err := backend.Keys(t.Context(), admin, prefix+":*")
		if err != nil || len(keys) != 2 {
			t.Fatalf("got the keys %q, %v, want 2", keys, err)
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

// TestABadSaleIsFound: TestCompare has what else may be wrong.
func TestABadSaleIsFound(t *testing.T) {
	t.Parallel()
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
	shop, err := newShop(st, phones, entering(func(gate.Request) gate.Pass { return gate.Pass{} })) // refuses nobody
	if err != nil {
		t.Fatal(err)
	}
	err = play(t.Context(), shop, small, io.Discard)
	for _, want := range []string{"400 of 10 were sold, 360 of them to buyers who had one", "10 are left, 0 held and 0 sold"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %q", err, want)
		}
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

// TestRunSaysWhatIsWrong of the arguments, and of a sale that is interrupted.
func TestRunSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-units=0":                   "-units <= -buyers",
		"-units=3 -buyers=2":         "-units <= -buyers",
		"-requests=999":              "-units <= -buyers",
		"-connections=0":             "a connection at least",
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
	admin := srv.Admin(t)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"-redis", srv.AdminURL(), "-connections=20"}, io.Discard) }()
	redistest.Await(t, time.Minute, "the sale to open", func() bool { return admin.DBSize(t.Context()).Val() > 0 })
	interrupt()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if keys, err := backend.Keys(t.Context(), admin, "*"); err != nil || len(keys) > 0 {
		t.Errorf("the sale left the keys %q, %v, want none", keys, err)
	}
}

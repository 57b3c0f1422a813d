package gate_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

// TestSettle: the permits of an admitted request are settled to what its Settle returns
// for the answer.
func TestSettle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply  *gate.Reply
		actual int64
		want   int64 // used in the end, of an estimate of 40
	}{
		"less":          {answered(200), 15, 15},
		"more":          {answered(200), 70, 70},
		"beyond debt":   {answered(200), 200, 150},
		"nothing":       {answered(502), 0, 0},
		"left as it is": {answered(200), -1, 40},
		"not seen":      {nil, 15, 15},
		"taken over":    {answered(0), 15, 15},
	} {
		l := local(t, limit.FixedWindow{Name: "tokens", Limit: 100, Window: time.Hour, MaxDebt: 50})
		ctx, gone := context.WithCancel(t.Context())
		p := gate.RateLimit(l, everyone, &gate.RateLimitOptions{
			Cost: func(gate.Request) (int64, error) { return 40, nil },
			Settle: func(r gate.Request, reply *gate.Reply) int64 {
				if r.Path() != "/v1/chat" || reply != c.reply {
					t.Errorf("%s: Settle was given %q and %+v, want the request and its answer", name, r.Path(), reply)
				}
				return c.actual
			},
		}).Enter(&request{path: "/v1/chat", ctx: ctx})
		if got := used(t, l); got != 40 {
			t.Errorf("%s: got %d used while the handler runs, want the estimate of 40", name, got)
		}
		gone() // the client
		p.Leave(c.reply)
		d, err := l.TakeN(t.Context(), "everyone", 0)
		if err != nil {
			t.Fatal(err)
		}
		if want := max(100-c.want, 0); d.Remaining != want {
			t.Errorf("%s: got %d left, want %d", name, d.Remaining, want)
		}
	}
}

// TestSettleByHand: the handler finds the decision and settles it. What the gate settles
// later changes nothing and is no error.
func TestSettleByHand(t *testing.T) {
	t.Parallel()
	l := local(t, limit.FixedWindow{Name: "tokens", Limit: 100, Window: time.Hour})
	var told hook
	p := gate.RateLimit(l, everyone, &gate.RateLimitOptions{
		InContext: true,
		OnError:   told.hear,
		Cost:      func(gate.Request) (int64, error) { return 40, nil },
		Settle:    func(gate.Request, *gate.Reply) int64 { return 90 },
	}).Enter(&request{})
	d, ok := limit.FromContext(p.Context)
	if !ok {
		t.Fatal("the handler finds no decision")
	}
	if s, err := d.Settle(t.Context(), 25); err != nil || s.After.Remaining != 75 {
		t.Errorf("got %+v, %v, want 75 left", s, err)
	}
	p.Leave(answered(200))
	if got := used(t, l); got != 25 || len(told.errs) != 0 {
		t.Errorf("got %d used and %v for the hook, want 25 and nothing", got, told.errs)
	}
}

func TestClamp(t *testing.T) {
	t.Parallel()
	l := local(t, limit.FixedWindow{Name: "tokens", Limit: 100, Window: time.Hour})
	dear := func(gate.Request) (int64, error) { return 4000, nil }
	if p := gate.RateLimit(l, everyone, &gate.RateLimitOptions{Cost: dear}).Enter(&request{}); p.Reply == nil || p.Reply.Status != 400 {
		t.Errorf("a cost beyond the limit: got %+v, want a 400", p.Reply)
	}
	clamped := gate.RateLimit(l, everyone, &gate.RateLimitOptions{Cost: dear, Clamp: true})
	for i, status := range []int{0, 429} {
		p, got := clamped.Enter(&request{}), 0
		if p.Reply != nil {
			got = p.Reply.Status
		}
		if got != status || used(t, l) != 100 {
			t.Errorf("request %d: got %d and %d used, want %d and 100", i, got, used(t, l), status)
		}
	}
}

func TestSettleIsCheckedAtWiring(t *testing.T) {
	t.Parallel()
	settle := func(gate.Request, *gate.Reply) int64 { return 1 }
	log := local(t, limit.SlidingLog{Name: "strict", Limit: 5, Window: time.Hour})
	leased := local(t, limit.WithLease(limit.FixedWindow{Limit: 5, Window: time.Hour}, time.Minute))
	gate.RateLimit(leased, everyone, &gate.RateLimitOptions{InContext: true}) // the handler settles
	for want, wire := range map[string]func(){
		"has Count and Settle: leave": func() {
			gate.RateLimit(hourly(t, 1), everyone, &gate.RateLimitOptions{Settle: settle, Count: gate.OnlyFailures})
		},
		`nothing settles its estimates: set RateLimitOptions.Settle, or set InContext`: func() { gate.RateLimit(leased, everyone, &gate.RateLimitOptions{Count: gate.OnlyFailures}) },
		`policy "strict" is a SlidingLog`:                                              func() { gate.RateLimit(log, everyone, &gate.RateLimitOptions{Settle: settle}) },
	} {
		if got := fmt.Sprint(panics(t, wire)); !strings.Contains(got, want) {
			t.Errorf("got the panic %q, want %q in it", got, want)
		}
	}
	var told hook
	g := gate.RateLimit(hourly(t, 1), everyone, &gate.RateLimitOptions{
		Settle: settle, OnError: told.hear,
		Policies: func(gate.Request) ([]limit.Policy, error) {
			return []limit.Policy{limit.SlidingLog{Limit: 5, Window: time.Hour}}, nil
		},
	})
	if p := g.Enter(&request{}); p.Reply == nil || p.Reply.Status != 500 || len(told.errs) != 1 {
		t.Errorf("a log of a request's own: got %+v and %v for the hook, want a 500 and the reason", p.Reply, told.errs)
	}
}

// TestAnEstimateOnALease: an estimate that Settle leaves as it is stays after its lease
// has ended. If Leave is never called for a request, its estimate comes back.
func TestAnEstimateOnALease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := redistest.Bubble(t)
		policy := limit.WithLease(limit.FixedWindow{Limit: 100, Window: time.Hour}, 10*time.Second)
		l, err := limit.New(redistest.BubbleClient(t, m), "leased", []limit.Policy{policy}, nil)
		if err != nil {
			t.Fatal(err)
		}
		g := gate.RateLimit(l, everyone, &gate.RateLimitOptions{
			Cost:   func(gate.Request) (int64, error) { return 40, nil },
			Settle: func(gate.Request, *gate.Reply) int64 { return -1 },
		})
		stays, crashes := g.Enter(&request{}), g.Enter(&request{})
		stays.Leave(answered(200))
		if crashes.Reply != nil {
			t.Fatalf("got %+v, want it admitted", crashes.Reply)
		}
		for i, back := 0, false; i < 100 && !back; i++ { // until it is known that nothing refers to the second one's decision
			runtime.GC()
			time.Sleep(11 * time.Second)
			d, err := l.PeekN(t.Context(), "everyone", 60)
			back = err != nil || d.Allowed
		}
		for n, want := range map[int64]bool{61: false, 60: true} {
			if d, err := l.PeekN(t.Context(), "everyone", n); err != nil || d.Allowed != want {
				t.Errorf("%d permits in addition to the 40 that stay: got allowed %t, %v, want %t", n, d.Allowed, err, want)
			}
		}
	})
}

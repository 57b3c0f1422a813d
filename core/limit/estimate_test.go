package limit

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	limitwire "github.com/neap-go/neap/core/limit/internal/wire"
	"github.com/neap-go/neap/internal/redistest"
)

// withLeases are the policies that can have a lease, each also beside one that cannot.
var withLeases = []Policy{
	WithLease(FixedWindow{Limit: 5, Window: time.Hour}, time.Minute),
	TokenBucket{Rate: 10, Per: time.Hour, Burst: 5},
	WithLease(CalendarWindow{Limit: 5, Every: Month}, time.Minute),
}

// leasedIn returns a limiter of 10 an hour in a bubble, with leases of 10 s.
func leasedIn(t *testing.T) (*miniredis.Miniredis, *Limiter) {
	t.Helper()
	m := redistest.Bubble(t)
	policy := WithLease(FixedWindow{Limit: 10, Window: time.Hour}, 10*time.Second)
	return m, must(New(redistest.BubbleClient(t, m), "leased", []Policy{policy}, closed(time.Second)))(t)
}

// abandon waits until it is known that nothing refers to the grants of these renewals. It
// does not sleep, because a cleanup runs outside of a bubble.
func abandon(t *testing.T, all ...*limitwire.Renewals) {
	t.Helper()
	for _, one := range all {
		for i := 0; !one.Over(); i++ {
			if i == 1000 {
				t.Fatal("something still refers to a decision after 1,000 collections of garbage")
			}
			runtime.GC()
		}
	}
}

// TestAnEstimateIsRenewedWhileItIsHeld. It is taken back after nothing refers to it any
// more.
func TestAnEstimateIsRenewedWhileItIsHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, l := leasedIn(t)
		held := tried(t, l, 6)
		for range 30 {
			time.Sleep(time.Minute + time.Second)
			if d := tried(t, l, 5); d.Allowed {
				t.Fatal("beside an estimate that is held: got 5 more granted, want a denial")
			}
		}
		if d := tried(t, l, 4); !d.Allowed {
			t.Fatal("beside an estimate of 6: got a denial of 4 more, want them granted")
		} else if _, err := d.Settle(t.Context(), 4); err != nil {
			t.Fatal(err)
		}
		abandon(t, held.request.kept) // from here on nothing refers to the grant
		if d := tried(t, l, 6); d.Allowed {
			t.Error("before its lease ends: got an estimate taken back, want a denial")
		}
		time.Sleep(11 * time.Second)
		if d, err := l.PeekN(t.Context(), "s", 6); err != nil || !d.Allowed {
			t.Errorf("a Peek after its lease has ended: got %v, %v, want it allowed", d.Allowed, err)
		}
		d := tried(t, l, 6)
		if !d.Allowed {
			t.Fatal("after its lease has ended: got a denial, want the estimate taken back")
		}
		if _, err := d.Settle(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if d := tried(t, l, 7); d.Allowed {
			t.Error("with 4 used: got 7 more of 10 granted, want a denial")
		}
	})
}

// TestNothingRenewsWhatIsSettled. Nor is anything renewed that was given back, denied,
// only asked about, or free.
func TestNothingRenewsWhatIsSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, l := leasedIn(t)
		settled, refunded, free := tried(t, l, 3), tried(t, l, 3), tried(t, l, 0)
		denied := tried(t, l, 9)
		asked, err := l.Peek(t.Context(), "s")
		if _, fault := settled.Settle(t.Context(), 1); errors.Join(err, fault, refunded.Refund(t.Context())) != nil {
			t.Fatal(err, fault)
		}
		before := m.CommandCount()
		time.Sleep(30 * time.Minute)
		if sent := m.CommandCount() - before; sent != 0 {
			t.Errorf("got %d commands in half an hour, want none", sent)
		}
		runtime.KeepAlive([]*request{free.request, denied.request, asked.request})
		if left := m.Keys(); slices.ContainsFunc(left, func(key string) bool { return strings.HasSuffix(key, "!estimates") }) {
			t.Errorf("got the keys %q, want no estimates", left)
		}
	})
}

// TestAnEstimateThatWasTakenBackIsChargedAsPlainUse when it is settled, and only once.
func TestAnEstimateThatWasTakenBackIsChargedAsPlainUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, l := leasedIn(t)
		d, refunded := tried(t, l, 5), tried(t, l, 3)
		m.SetError("LOADING Redis is loading the dataset in memory") // no renewal reaches it
		time.Sleep(11 * time.Second)
		m.SetError("")
		if all := tried(t, l, 10); !all.Allowed {
			t.Fatal("after the leases have ended: got a denial, want all 10 granted")
		} else if _, err := all.Settle(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		s, err := d.Settle(t.Context(), 3)
		if err != nil || s.After.Remaining != 5 {
			t.Errorf("Settle to 3 beside 2: got %d remaining, %v, want 5", s.After.Remaining, err)
		}
		if err := refunded.Refund(t.Context()); !errors.Is(err, ErrRefund) {
			t.Errorf("the refund of an estimate that was taken back: got %v, want ErrRefund", err)
		}
		if left := tried(t, l, 0).Remaining; left != 5 {
			t.Errorf("after that refund: got %d remaining, want 5", left)
		}
		time.Sleep(2 * time.Second) // until a renewal that is under way has ended
	})
}

// TestTheShortestLeaseSaysWhenToRenew, whichever policy has it.
func TestTheShortestLeaseSaysWhenToRenew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := redistest.Bubble(t)
		short := WithLease(FixedWindow{Name: "short", Limit: 10, Window: time.Hour}, 10*time.Second)
		long := WithLease(FixedWindow{Name: "long", Limit: 100, Window: time.Hour}, time.Hour)
		l := must(New(redistest.BubbleClient(t, m), "leased", []Policy{short, long}, closed(time.Second)))(t)
		held := tried(t, l, 6)
		time.Sleep(time.Minute)
		if d := tried(t, l, 5); d.Allowed {
			t.Error("beside an estimate that is held: got 5 more granted, want a denial")
		}
		if _, err := held.Settle(t.Context(), 6); err != nil {
			t.Fatal(err)
		}
	})
}

// TestNoMoreComesBackThanIsUsed, and at most 100 estimates come back at a time. If
// somebody has removed the time to live of the estimates, they get one again.
func TestNoMoreComesBackThanIsUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, l := leasedIn(t)
		rdb := redistest.BubbleClient(t, m)
		window := l.remote.Space.Key("s", l.set.Rules[0].Tail)
		abandon(t, tried(t, l, 6).request.kept)
		must(rdb.Set(t.Context(), window, "1", time.Hour).Result())(t) // somebody has edited it
		time.Sleep(11 * time.Second)
		if d := tried(t, l, 10); !d.Allowed || d.Remaining != 0 {
			t.Errorf("an estimate of 6 beside 1 that is used: got allowed %t and %d remaining, want all 10 granted and none left", d.Allowed, d.Remaining)
		}

		many := must(l.With(WithLease(FixedWindow{Name: "many", Limit: 150, Window: time.Hour}, 10*time.Second)))(t)
		var all []*limitwire.Renewals
		for range 150 {
			all = append(all, tried(t, many, 1).request.kept)
		}
		abandon(t, all...)
		time.Sleep(11 * time.Second)
		if d := tried(t, many, 150); d.Allowed || d.Remaining != 100 {
			t.Errorf("of 150 estimates: got allowed %t and %d remaining, want 100 taken back at first", d.Allowed, d.Remaining)
		}
		if d := tried(t, many, 150); !d.Allowed {
			t.Error("of 150 estimates: got a denial again, want the others taken back too")
		}

		held := tried(t, must(l.With(WithLease(FixedWindow{Name: "held", Limit: 1, Window: time.Hour}, 10*time.Second)))(t), 1)
		estimates := l.remote.Space.Key("s", "held!window-1-1h!estimates")
		if !must(rdb.Persist(t.Context(), estimates).Result())(t) {
			t.Fatal("estimates: got none with a time to live, want some")
		}
		time.Sleep(5 * time.Second)
		if left := must(rdb.PTTL(t.Context(), estimates).Result())(t); left <= 0 {
			t.Errorf("after a renewal: got estimates with %v to live, want a time to live", left)
		}
		runtime.KeepAlive(held.request)
	})
}

// TestResetForgetsEstimates, whether the policy of the limiter has a lease or not.
func TestResetForgetsEstimates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, l := leasedIn(t)
		plain := must(l.With(FixedWindow{Limit: 10, Window: time.Hour}))(t)
		for _, by := range []*Limiter{l, plain} {
			_ = tried(t, l, 5)
			if found, err := by.Reset(t.Context(), "s"); err != nil || !found || len(m.Keys()) != 0 {
				t.Errorf("Reset: got %t, %v and the keys %q, want all forgotten", found, err, m.Keys())
			}
		}
	})
}

// TestWhatHasNoLease: the error names the policy and the remedy.
func TestWhatHasNoLease(t *testing.T) {
	t.Parallel()
	window := FixedWindow{Name: "w", Limit: 10, Window: time.Hour}
	for want, p := range map[string]Policy{
		`use a FixedWindow or a CalendarWindow`:            WithLease(TokenBucket{Rate: 1, Per: time.Second}, time.Minute),
		`policy "sw": use a FixedWindow`:                   WithLease(SlidingWindow{Name: "sw", Limit: 1, Window: time.Second}, time.Minute),
		`policy "l": use a FixedWindow`:                    WithLease(SlidingLog{Name: "l", Limit: 1, Window: time.Second}, time.Minute),
		`the lease of policy "w" is 0s: use 10ms to 24h`:   WithLease(window, 0),
		`the lease of policy "w" is 25h0m0s: use 10ms`:     WithLease(WithLease(window, time.Minute), 25*time.Hour),
		`leave out PerRequest or WithLease`:                WithLease(PerRequest(window), time.Minute),
		`A PerRequest is not settled`:                      PerRequest(WithLease(window, time.Minute)),
		`Limit is 0`:                                       WithLease(FixedWindow{Window: time.Hour}, time.Minute),
		`the lease of policy "w" is 1ms: use 10ms to 24h0`: Shadow(WithBan(KeepOnChange(WithLease(window, time.Millisecond)), Ban{After: 1, Within: time.Hour, For: time.Hour})),
	} {
		if _, err := NewLocal("n", []Policy{p}, nil); err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) {
			t.Errorf("WithLease of a policy that cannot have one: got %v, want %q", err, want)
		}
	}
	if _, err := New(redis.NewClient(&redis.Options{}), "n", []Policy{WithLease(window, time.Minute)}, &Options{Prepaid: Prepaid{Most: 10, Term: time.Second}}); err == nil || !strings.Contains(err.Error(), "WithLease cannot be Prepaid") {
		t.Errorf("Prepaid: got %v, want it refused", err)
	}
	if WithLease(nil, time.Minute) != nil {
		t.Error("WithLease(nil): got a policy, want nil, which New refuses")
	}
}

// TestLeasesKeepTheirPlace: whatever a policy is wrapped in, its lease is the one that
// was given last.
func TestLeasesKeepTheirPlace(t *testing.T) {
	t.Parallel()
	window := FixedWindow{Name: "w", Limit: 10, Window: time.Hour}
	ban := Ban{After: 1, Within: time.Hour, For: time.Hour}
	for i, p := range []Policy{
		WithLease(Shadow(WithBan(KeepOnChange(window), ban)), time.Minute),
		Shadow(WithBan(KeepOnChange(WithLease(window, time.Minute)), ban)),
		WithLease(WithBan(Shadow(KeepOnChange(WithLease(window, time.Hour))), ban), time.Minute),
		WithBan(Shadow(WithLease(KeepOnChange(&window), time.Minute)), ban),
	} {
		r := must(NewLocal("n", []Policy{p}, nil))(t).set.Rules[0]
		if r.Lease != time.Minute || !r.Shadow || r.Ban == nil || r.Kept == "" {
			t.Errorf("policy %d: got %+v, want a lease of a minute, a shadow, a ban, and kept", i, r)
		}
	}
}

// TestRenewalsKeepNoDecision: they end once nothing refers to it.
func TestRenewalsKeepNoDecision(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	l := must(New(rdb, "collected", []Policy{WithLease(FixedWindow{Limit: 1, Window: time.Hour}, 30*time.Millisecond)}, closed(time.Minute)))(t)
	abandon(t, tried(t, l, 1).request.kept)
	redistest.Await(t, time.Minute, "its lease to end", func() bool { return tried(t, l, 1).Allowed })
}

// TestNoRenewalsAreKeptOfWhatIsOver: neither of decisions that are spent, long before
// their leases are due, nor of those that nothing refers to, once there are others.
func TestNoRenewalsAreKeptOfWhatIsOver(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	l := must(New(rdb, "kept", []Policy{WithLease(FixedWindow{Limit: 2000, Window: 24 * time.Hour}, time.Hour)}, closed(time.Minute)))(t)
	for name, end := range map[string]func(d Decision) error{
		"settled":   func(d Decision) error { _, err := d.Settle(t.Context(), 0); return err },
		"refunded":  func(d Decision) error { return d.Refund(t.Context()) },
		"abandoned": func(Decision) error { return nil },
	} {
		d := tried(t, l, 1)
		of := weak.Make(d.request.kept)
		if err := end(d); err != nil {
			t.Fatal(err)
		}
		abandon(t, d.request.kept)
		d = Decision{}
		for i := 0; of.Value() != nil; i++ {
			if i == 1000 {
				t.Fatalf("%s: something still refers to the renewals after 1,000 collections of garbage", name)
			}
			if name == "abandoned" {
				tried(t, l, 1)
			}
			runtime.GC()
		}
	}
}

// tried asks once; the decision may be a denial.
func tried(t *testing.T, l *Limiter, cost int64) Decision {
	t.Helper()
	return must(l.TakeN(t.Context(), "s", cost))(t)
}

// TestOnlyAnEstimateThatWasTakenIsRenewed: not that of a request that another policy denied, of a
// Peek, or of a shadow that would have denied.
func TestOnlyAnEstimateThatWasTakenIsRenewed(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	leased := WithLease(FixedWindow{Name: "leased", Limit: 10, Window: time.Hour}, time.Minute)
	one := FixedWindow{Name: "one", Limit: 1, Window: time.Hour}
	for name, policies := range map[string][]Policy{"denied": {leased, one}, "shadow": {Shadow(WithLease(one, time.Minute)), FixedWindow{Name: "many", Limit: 10, Window: time.Hour}}} {
		l := must(New(rdb, name, policies, closed(patience)))(t)
		if d := must(l.Take(t.Context(), "s"))(t); d.request.kept == nil {
			t.Errorf("%s: the first: got no renewals, want them", name)
		}
		for what, ask := range map[string]func(context.Context, string) (Decision, error){"Take": l.Take, "Peek": l.Peek} {
			if d := must(ask(t.Context(), "s"))(t); d.request.kept != nil {
				t.Errorf("%s: the next %s: got renewals of what it has not taken, want none", name, what)
			}
		}
	}
}

// TestCallersThatWaitKeepNoDecision: its lease ends although others wait for its permits.
func TestCallersThatWaitKeepNoDecision(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	l := must(New(rdb, "waited", []Policy{WithLease(FixedWindow{Limit: 1, Window: 24 * time.Hour}, time.Minute)}, closed(time.Minute)))(t)
	held := tried(t, l, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	granted := make(chan *limitwire.Renewals, 2)
	for range 2 {
		all.Go(func() {
			if d, err := l.Wait(ctx, "s"); err == nil {
				granted <- d.request.kept
			}
		})
	}
	redistest.Await(t, time.Minute, "both to wait", func() bool { return l.Stats().Waiting == 2 })
	if _, err := held.Settle(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	abandon(t, <-granted)
}

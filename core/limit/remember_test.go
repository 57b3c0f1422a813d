package limit_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
	"github.com/neap-go/neap/lua"
)

const rememberFor = 100 * time.Millisecond

// errFalse reports a denial that Redis does not confirm.
var errFalse = errors.New("a denial that Redis would grant")

// history is what happens to a subject, through a limiter that remembers denials and
// through another process.
type history struct {
	rng        *rand.Rand
	own, other *limit.Limiter
	granted    []limit.Decision // of own
	foreign    []limit.Decision // of other
	calls      *atomic.Int64
	recalled   int       // denials that made no call
	changed    time.Time // when the other process last gave something back
}

func newHistory(t *testing.T, rng *rand.Rand, policies []limit.Policy) *history {
	t.Helper()
	rdb, calls := redistest.Counted(t)
	h := &history{rng: rng, calls: calls}
	for at, opts := range map[**limit.Limiter]*limit.Options{
		&h.own:   {Budget: time.Minute, Fail: store.FailClosed, RememberDenials: rememberFor},
		&h.other: {Budget: time.Minute, Fail: store.FailClosed},
	} {
		*at = must(limit.New(must(store.Open(rdb, nil))(t), "h", policies, opts))(t)
	}
	return h
}

// step does something random. It returns errFalse for a denial that Redis does not
// confirm.
func (h *history) step(t *testing.T, capacity int64) error {
	t.Helper()
	ctx := t.Context()
	switch h.rng.IntN(12) {
	case 0:
		if d, err := h.other.TakeN(ctx, "s", randomCost(h.rng, capacity)); err != nil {
			return err
		} else if d.Allowed {
			h.foreign = append(h.foreign, d)
		}
	case 1:
		if n := len(h.granted); n > 0 {
			if err := h.granted[n-1].Refund(ctx); err != nil && !errors.Is(err, limit.ErrRefund) {
				return err
			}
			h.granted = h.granted[:n-1]
		}
	case 2:
		if n := len(h.foreign); n > 0 && h.rng.IntN(4) == 0 {
			if err := h.foreign[n-1].Refund(ctx); err != nil && !errors.Is(err, limit.ErrRefund) {
				return err
			}
			h.foreign, h.changed = h.foreign[:n-1], time.Now()
		}
	case 3:
		if h.rng.IntN(10) == 0 {
			if _, err := h.own.Reset(ctx, "s"); err != nil {
				return err
			}
		}
	case 4:
		if h.rng.IntN(20) == 0 {
			h.changed = time.Now()
			if _, err := h.other.Reset(ctx, "s"); err != nil {
				return err
			}
		}
	case 5, 6, 7:
		time.Sleep(time.Duration(h.rng.Int64N(int64(20 * time.Millisecond))))
	default:
		cost := max(randomCost(h.rng, capacity), 1)
		asked := h.calls.Load() + 1
		d, err := h.own.TakeN(ctx, "s", cost)
		if h.calls.Load() < asked && err == nil && !d.Allowed {
			h.recalled++
		}
		switch {
		case err != nil:
			return err
		case d.Allowed:
			h.granted = append(h.granted, d)
		default:
			truth, err := h.other.TakeN(ctx, "s", cost)
			if err != nil {
				return err
			}
			if truth.Allowed && time.Since(h.changed) > rememberFor {
				return fmt.Errorf("%w: cost %d, for %v", errFalse, cost, d.RetryAfter)
			}
			if truth.Allowed {
				h.foreign = append(h.foreign, truth)
			}
		}
	}
	return nil
}

// TestRememberedDenialsAreTrue compares each denial with what Redis says at the same
// moment.
func TestRememberedDenialsAreTrue(t *testing.T) {
	t.Parallel()
	for _, kind := range lua.Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rng, recalled := redistest.Rand(t), 0
			many := max(redistest.Steps(100_000)/500, 1)
			for i := 0; i < many || i < many+10 && recalled == 0 && kind != "fast"; i++ {
				s := specOf(rng, kind, random)
				p := s.policy()
				synctest.Test(t, func(t *testing.T) {
					h := newHistory(t, rng, []limit.Policy{p})
					for range 500 {
						if err := h.step(t, s.most()); err != nil {
							t.Fatalf("%+v: got %v, want only denials that the server would make too", p, err)
						}
					}
					recalled += h.recalled
				})
			}
			if recalled == 0 && kind != "fast" { // whose waits are shorter than what clocks may differ by, most of them
				t.Error("in all rounds: got no denial that was remembered, want some")
			}
		})
	}
}

// TestARememberedDenialCostsNoCall. It also denies larger costs, for all limiters with
// the same policies.
func TestARememberedDenialCostsNoCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, calls := redistest.Counted(t)
		policy := limit.TokenBucket{Rate: 1, Per: time.Minute, Burst: 3}
		l := must(limit.New(rdb, "n", []limit.Policy{policy}, &limit.Options{Budget: time.Minute, RememberDenials: rememberFor}))(t)
		twin := must(l.With(policy))(t)
		ctx := t.Context()
		take := func(l *limit.Limiter, cost int64, want bool) limit.Decision {
			t.Helper()
			d, err := l.TakeN(ctx, "s", cost)
			if err != nil || d.Allowed != want {
				t.Fatalf("cost %d: got %+v, %v, want it allowed: %t", cost, d, err, want)
			}
			return d
		}
		take(l, 2, true)
		asked := take(l, 2, false)
		before := calls.Load()
		time.Sleep(10 * time.Millisecond)
		again := take(twin, 2, false)
		take(l, 3, false)
		if n := calls.Load() - before; n != 0 {
			t.Errorf("remembered denials: got %d calls, want none", n)
		}
		if aged := asked.RetryAfter - 10*time.Millisecond; again.RetryAfter != aged || again.Remaining != 1 {
			t.Errorf("a remembered denial: got RetryAfter %v and %d left, want %v and 1", again.RetryAfter, again.Remaining, aged)
		}
		if err := again.Refund(ctx); !errors.Is(err, limit.ErrRefund) {
			t.Errorf("Refund of a remembered denial: got %v, want ErrRefund", err)
		}
		if s := l.Stats(); s.Denied != 3 {
			t.Errorf("Stats: got %d denials counted, want 3", s.Denied)
		}
		if d, err := l.Peek(ctx, "s"); err != nil || !d.Allowed {
			t.Errorf("Peek beside a denial: got %+v, %v, want one permit left", d, err)
		}
		take(l, 1, true) // a smaller cost is asked for
		time.Sleep(rememberFor)
		before = calls.Load()
		take(l, 2, false)
		if n := calls.Load() - before; n != 1 {
			t.Errorf("after RememberDenials has passed: got %d calls, want one", n)
		}
		must(l.Reset(ctx, "s"))(t)
		take(l, 3, true)
	})
}

// TestARememberedDenialAgesEachPolicy, including shadow policies.
func TestARememberedDenialAgesEachPolicy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, calls := redistest.Counted(t)
		l := must(limit.New(must(store.Open(rdb, nil))(t), "n", []limit.Policy{
			limit.FixedWindow{Name: "enforced", Limit: 10, Window: time.Hour},
			limit.Shadow(limit.TokenBucket{Name: "watched", Rate: 10, Per: time.Second}),
		}, &limit.Options{Budget: time.Minute, Fail: store.FailClosed, RememberDenials: time.Minute}))(t)
		must(l.TakeN(t.Context(), "s", 10))(t)
		must(l.Take(t.Context(), "s"))(t)
		before := calls.Load()
		for after, want := range []bool{false, true} {
			d := must(l.Take(t.Context(), "s"))(t)
			for s := range d.States() {
				if s.Policy == "watched" && s.Allowed != want || s.Policy == "enforced" && s.Allowed {
					t.Errorf("after %d s: policy %s: got allowed %v, want the enforced one to deny, and the other when it is due", after, s.Policy, s.Allowed)
				}
			}
			time.Sleep(time.Second)
		}
		if n := calls.Load() - before; n != 0 {
			t.Errorf("remembered denials: got %d calls, want none", n)
		}
	})
}

// TestARememberedDenialOfALogTellsNoMoreThanItKnows: when the first permit has left, one
// more can be taken, and when the next one leaves is not known.
func TestARememberedDenialOfALogTellsNoMoreThanItKnows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, calls := redistest.Counted(t)
		l := must(limit.New(rdb, "n", []limit.Policy{limit.SlidingLog{Limit: 4, Window: 10 * time.Second}}, &limit.Options{Budget: time.Minute, RememberDenials: time.Minute}))(t)
		for range 3 {
			must(l.Take(t.Context(), "s"))(t)
			time.Sleep(time.Second)
		}
		must(l.TakeN(t.Context(), "t", 3))(t)
		must(l.TakeN(t.Context(), "t", 2))(t)
		before := calls.Load()
		if must(l.TakeN(t.Context(), "t", 4))(t); calls.Load() != before+1 {
			t.Error("a larger cost than the one that was denied: got it answered from memory, want Redis asked")
		}
		must(l.TakeN(t.Context(), "s", 4))(t)
		before = calls.Load()
		time.Sleep(5500 * time.Millisecond)
		for _, want := range []limit.State{ // a second after the other
			{Remaining: 1, NextAfter: 500 * time.Millisecond, RetryAfter: 2500 * time.Millisecond},
			{Remaining: 2, NextAfter: 1500 * time.Millisecond, RetryAfter: 1500 * time.Millisecond},
			{Remaining: 2, NextAfter: 500 * time.Millisecond, RetryAfter: 500 * time.Millisecond},
		} {
			time.Sleep(time.Second)
			d := must(l.TakeN(t.Context(), "s", 4))(t)
			for got := range d.States() {
				if got.Remaining != want.Remaining || got.NextAfter != want.NextAfter || got.RetryAfter != want.RetryAfter {
					t.Errorf("got %+v, want %d left, more after %v and all after %v", got, want.Remaining, want.NextAfter, want.RetryAfter)
				}
			}
		}
		if n := calls.Load() - before; n != 0 {
			t.Errorf("remembered denials: got %d calls, want none", n)
		}
	})
}

// TestADenialIsNotAnothers: recall looks first at the denial that was found last, and
// must not take it for another's.
func TestADenialIsNotAnothers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Counted(t)
		l := must(limit.New(rdb, "n", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}},
			&limit.Options{Budget: time.Minute, RememberDenials: time.Minute, MaxLocal: 1}))(t)
		other := must(l.With(limit.FixedWindow{Limit: 1, Window: time.Minute}))(t)
		for range 3 {
			must(l.Take(t.Context(), "s"))(t)
		}
		if d := must(l.Take(t.Context(), "another"))(t); !d.Allowed {
			t.Error("another subject: got a denial, want a permit")
		}
		if d := must(other.Take(t.Context(), "s"))(t); !d.Allowed {
			t.Error("another policy: got a denial, want a permit")
		}
	})
}

// TestADenialThatEndedIsRememberedAnew: each new denial costs one call.
func TestADenialThatEndedIsRememberedAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, calls := redistest.Counted(t)
		l := must(limit.New(rdb, "n", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}},
			&limit.Options{Budget: time.Minute, RememberDenials: time.Second}))(t)
		must(l.Take(t.Context(), "s"))(t)
		for n := range 3 {
			before := calls.Load()
			for range 5 {
				must(l.Take(t.Context(), "s"))(t)
			}
			if got := calls.Load() - before; got != 1 {
				t.Errorf("denial %d: got %d calls for five denials, want 1", n, got)
			}
			time.Sleep(2 * time.Second)
		}
	})
}

// TestRememberedDenialsAllocations: repeating a denial of one policy allocates nothing.
func TestRememberedDenialsAllocations(t *testing.T) {
	st := storetest.At(t, redistest.Standalone(t).Client(t), redistest.Prefix(t))
	l := must(limit.New(st, "n", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}},
		&limit.Options{Budget: time.Minute, RememberDenials: time.Minute}))(t)
	ctx := t.Context()
	for range 2 {
		must(l.Take(ctx, "s"))(t)
	}
	if n := testing.AllocsPerRun(1000, func() {
		if d, err := l.Take(ctx, "s"); err != nil || d.Allowed {
			t.Fatalf("a take: got %+v, %v, want a denial", d, err)
		}
	}); n != 0 {
		t.Errorf("a remembered denial: got %v allocations, want none", n)
	}
}

// TestDenialsOfRequestsAreTheirOwn: a policy and its PerRequest share their state, and
// neither remembers the other's denials.
func TestDenialsOfRequestsAreTheirOwn(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	log := limit.SlidingLog{Limit: 10, Window: time.Hour}
	l := must(limit.New(rdb, "n", []limit.Policy{log}, &limit.Options{Budget: time.Minute, Fail: store.FailClosed, RememberDenials: time.Minute}))(t)
	take(t, l, "s", 6)
	if d := must(l.TakeN(t.Context(), "s", 5))(t); d.Allowed {
		t.Errorf("5 more after 6 of 10: got %+v, want a denial", d)
	}
	if d := must(must(l.With(limit.PerRequest(log)))(t).TakeN(t.Context(), "s", 5))(t); !d.Allowed || d.Remaining != 3 {
		t.Errorf("a request of that cost: got %+v, want it allowed and 3 remaining", d)
	}
}

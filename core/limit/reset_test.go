package limit_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// forget resets a subject and returns whether anything was found.
func forget(t *testing.T, l *limit.Limiter, subject string) bool {
	t.Helper()
	return must(l.Reset(t.Context(), subject))(t)
}

// found checks that Reset tells a subject that took something from one that did not.
func found(t *testing.T, l *limit.Limiter) {
	t.Helper()
	if forget(t, l, "nobody") {
		t.Error("the reset of a subject that was never seen: got it found, want nothing found")
	}
	take(t, l, "looked", 0)
	must(l.Peek(t.Context(), "looked"))(t)
	if forget(t, l, "looked") {
		t.Error("the reset of a subject that took nothing: got it found, want nothing found")
	}
	take(t, l, "somebody", mostOf(t, l)) // a fast bucket frees one of them within a millisecond
	for _, want := range []bool{true, false} {
		if got := forget(t, l, "somebody"); got != want {
			t.Errorf("Reset: got found %t, want %t", got, want)
		}
	}
}

func TestResetTellsWhetherThereWasAnything(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		for i, policies := range setsOf(limit.OneOfEach) {
			found(t, must(limit.New(storetest.At(t, rdb, prefix), fmt.Sprintf("found%d", i), policies, closed(patience)))(t))
		}
	})
}

// TestARefundAfterAReset gives back no more than there is: a window that begins in the same
// millisecond as the decision's own is taken for it.
func TestARefundAfterAReset(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for i, policies := range each(slow) {
			for _, l := range []*limit.Limiter{newTestLocal(t, nil, policies...), inBubble(t, redistest.Bubble(t), fmt.Sprint(i), policies...)} {
				d := take(t, l, "s", 60)
				forget(t, l, "s")
				take(t, l, "s", 10)
				if err := d.Refund(t.Context()); err != nil {
					t.Errorf("%T: the refund of a decision before a reset: got %v, want no error", policies[0], err)
				}
				if d := must(l.Peek(t.Context(), "s"))(t); d.Remaining != 100 {
					t.Errorf("%T: after it: got %+v, want all 100 left", policies[0], d)
				}
				take(t, l, "s", 100)
				if d := must(l.Take(t.Context(), "s"))(t); d.Allowed {
					t.Errorf("%T: after 100 of 100: got %+v, want a denial", policies[0], d)
				}
			}
		}
	})
}

// A cell of this process stays after nothing of it is in use any more.
func TestResetInProcessTellsWhetherThereWasAnything(t *testing.T) {
	t.Parallel()
	for i, policies := range setsOf(limit.OneOfEach) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newTestLocal(t, nil, policies...)
				found(t, l)
				d := take(t, l, "late", mostOf(t, l))
				time.Sleep(d.ResetAfter - time.Microsecond)
				if l.Stats().LocalStates == 0 || !forget(t, l, "late") {
					t.Error("a reset a microsecond before all is free: got no state or found false, want a state and true")
				}
				take(t, l, "late", mostOf(t, l))
				time.Sleep(32 * day)
				if l.Stats().LocalStates == 0 || forget(t, l, "late") {
					t.Error("a reset long after all is free: got found true or no state, want false and the state still there")
				}
			})
		})
	}
}

// TestADenialTakesNoRoom among what a process keeps.
func TestADenialTakesNoRoom(t *testing.T) {
	t.Parallel()
	for _, p := range limit.Steady {
		l := newTestLocal(t, &limit.Options{Holds: true}, p)
		for i := range 10 {
			subject := fmt.Sprint(i)
			must(0, l.Hold(t.Context(), subject, time.Hour))(t)
			if d := must(l.Take(t.Context(), subject))(t); d.Allowed {
				t.Fatalf("%+v: got %+v, want a denial", p, d)
			}
		}
		if n := l.Stats().LocalStates; n != 0 {
			t.Errorf("%+v: got %d states kept of subjects that took nothing, want none", p, n)
		}
	}
}

// What was taken while Redis was away is stored in this process, and found there.
func TestResetFindsWhatWasTakenInAnOutage(t *testing.T) {
	t.Parallel()
	srv, rdb := redistest.Miniredis(t)
	l := must(limit.New(rdb, "away", []limit.Policy{limit.FixedWindow{Limit: 5, Window: time.Hour}}, &limit.Options{Budget: 5 * time.Second}))(t)
	srv.SetError("LOADING Redis is loading the dataset in memory")
	if d := take(t, l, "s", 2); !d.Degraded {
		t.Fatalf("a take while Redis is away: got %+v, want it degraded", d)
	}
	if _, err := l.Reset(t.Context(), "other"); err == nil {
		t.Error("a reset while Redis is away: got no error, want one")
	}
	srv.SetError("")
	for _, want := range []bool{true, false} {
		if got := forget(t, l, "s"); got != want {
			t.Errorf("Reset after the outage: got found %t, want %t", got, want)
		}
	}
}

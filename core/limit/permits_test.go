package limit

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/limit/internal/prepaid"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// charged returns the permits that a subject of the limiter has.
func charged(t *testing.T, l *Limiter, subject string) *prepaid.Permits {
	t.Helper()
	p := current(l, subject)
	if p.Left() <= 0 {
		t.Fatal("got no permits that are left, want some: this test is about them")
	}
	return p
}

// current returns the permits of a subject that requests take from, or nil.
func current(l *Limiter, subject string) *prepaid.Permits {
	p, _ := l.accounts.Held(subject, l.set)
	return p
}

// TestPermitsEndBeforeTheirTermAndWindow, earlier by the most that clocks may differ.
func TestPermitsEndBeforeTheirTermAndWindow(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		policy Policy
		lasts  time.Duration // what ends the permits
		grain  time.Duration
	}{
		"term":           {FixedWindow{Limit: 1_000_000, Window: time.Hour}, 1000 * ms, 0},
		"fixed window":   {FixedWindow{Limit: 1_000_000, Window: 800 * time.Millisecond}, 800 * ms, ms},
		"sliding window": {SlidingWindow{Limit: 1_000_000, Window: 800 * time.Millisecond}, 800 * ms, ms},
		"bucket":         {TokenBucket{Rate: 1000, Per: time.Second, Burst: 1_000_000}, 1000 * ms, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, c.policy, Prepaid{Most: 1000, Term: time.Second})
			l := f.process(t)
			for range 1000 { // no time passes
				must(l.Take(t.Context(), "s"))(t)
			}
			synctest.Wait()
			for i := 0; i < 100 && current(l, "s").Left() == 0; i++ { // the last request may take the last permit
				must(l.Take(t.Context(), "s"))(t)
				synctest.Wait()
			}
			p := charged(t, l, "s")
			if got, want := p.Lasts(), c.lasts-c.lasts/1000-c.grain; got != want {
				t.Errorf("%s: got permits that last for %v, want %v", name, got, want)
			}
			time.Sleep(2 * time.Second)
		})
	}
}

// TestPermitsAreGrantedDuringAnOutage until they end. After that the failure mode
// decides.
func TestPermitsAreGrantedDuringAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, _, at := prepaidTo(t)
		_, next := l.accounts.Held("s", l.set)
		left := charged(t, l, "s").Left() + next.Left()
		lost := errors.New("a lost connection")
		at.lose.Store(&lost)
		for n := range left {
			if d, err := l.Take(t.Context(), "s"); err != nil || !d.Allowed || d.Degraded {
				t.Fatalf("permit %d of %d: got %+v, %v, want a permit as if Redis answered", n, left, d, err)
			}
		}
		if _, err := l.Take(t.Context(), "s"); !errors.Is(err, lost) {
			t.Errorf("after the last prepaid permit: got %v, want %v", err, lost)
		}
		at.lose.Store(nil)
		time.Sleep(time.Minute)
	})
}

// TestNoPermitIsGrantedAtItsEnd, whether the timer that gives them back has run or not. The bubble
// may run either first.
func TestNoPermitIsGrantedAtItsEnd(t *testing.T) {
	t.Parallel()
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			l, _, at := prepaidTo(t)
			lasts := charged(t, l, "s").Lasts()
			if _, next := l.accounts.Held("s", l.set); next != nil {
				lasts = max(lasts, next.Lasts())
			}
			lost := errors.New("a lost connection")
			at.lose.Store(&lost)
			time.Sleep(lasts)
			if d, err := l.Take(t.Context(), "s"); !errors.Is(err, lost) {
				t.Errorf("at their end: got %+v, %v, want no permit of those that were charged ahead, and %v", d, err, lost)
			}
			at.lose.Store(nil)
			time.Sleep(time.Minute)
		})
	}
}

// TestPrepaidFiguresAge without a call to Redis.
func TestPrepaidFiguresAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, calls, _ := prepaidTo(t)
		before := calls.Load()
		first := must(l.Take(t.Context(), "s"))(t)
		time.Sleep(300 * time.Millisecond)
		second := must(l.Take(t.Context(), "s"))(t)
		if aged := first.ResetAfter - second.ResetAfter; aged != 300*time.Millisecond || calls.Load() != before {
			t.Errorf("after 300 ms: got ResetAfter smaller by %v, and %d calls, want 300 ms and none", aged, calls.Load()-before)
		}
		time.Sleep(2 * time.Second)
	})
}

// TestAResetEndsACharge that Redis has carried out and not answered. Redis has then
// forgotten the permits.
func TestAResetEndsACharge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, _, at := prepaidTo(t)
		time.Sleep(2 * time.Second)
		reset := func() {
			at.then.Store(nil)
			must(l.Reset(t.Context(), "s"))(t)
		}
		at.then.Store(&reset)
		must(l.Take(t.Context(), "s"))(t)
		synctest.Wait()
		if at.then.Load() != nil {
			t.Fatal("got no charge, want one: this test is about it")
		}
		if one, next := l.accounts.Held("s", l.set); one.Left()+next.Left() > 0 {
			t.Errorf("after the reset: got %d and %d permits that Redis has forgotten, want none", one.Left(), next.Left())
		}
		time.Sleep(2 * time.Second)
	})
}

// TestPermitsAreGivenBackToTheirLimiter while they are stored, also those that a limiter
// granted that With made with the same policies.
func TestPermitsAreGivenBackToTheirLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, calls, _ := prepaidTo(t)
		twin := must(l.With(FixedWindow{Limit: 1_000_000, Window: time.Hour}))(t)
		before := calls.Load()
		one, two, three := must(l.Take(t.Context(), "s"))(t), must(l.Take(t.Context(), "s"))(t), must(twin.Take(t.Context(), "s"))(t)
		left := charged(t, l, "s").Left()
		must(0, one.Refund(t.Context()))(t)
		must(0, three.Refund(t.Context()))(t)
		if got := charged(t, l, "s").Left(); got != left+2 || calls.Load() != before {
			t.Errorf("got %d permits after two refunds, and %d calls, want %d and none", got, calls.Load()-before, left+2)
		}
		time.Sleep(2 * time.Second)
		before = calls.Load()
		if err := two.Refund(t.Context()); !errors.Is(err, ErrRefund) || calls.Load() != before {
			t.Errorf("a refund after their Term: got %v and %d calls, want ErrRefund and none", err, calls.Load()-before)
		}
	})
}

// TestDrainReturnsAllPrepaid: also the permits whose Term ends at this moment, those that
// are just being charged, and those of a subject that was forgotten.
func TestDrainReturnsAllPrepaid(t *testing.T) {
	t.Parallel()
	slow := func() { time.Sleep(20 * time.Millisecond) }
	for name, soon := range map[string]func(t *testing.T, l *Limiter, at *around) (others uint64){
		"whose Term ends": func(t *testing.T, l *Limiter, at *around) uint64 {
			at.do.Store(&slow)
			time.Sleep(charged(t, l, "s").Lasts() + 1)
			return 0
		},
		"just being charged": func(t *testing.T, l *Limiter, at *around) uint64 {
			at.do.Store(&slow)
			for l.accounts.Charging() == 0 {
				must(l.Take(t.Context(), "s"))(t)
			}
			return 0
		},
		"of a forgotten subject": func(t *testing.T, l *Limiter, _ *around) uint64 {
			must(l.Take(t.Context(), "another"))(t) // there is room for one
			return 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, _, at := prepaidTo(t)
				others := soon(t, l, at)
				must(0, l.remote.Store.Drain(t.Context()))(t)
				at.do.Store(nil)
				d := must(l.Peek(t.Context(), "s"))(t)
				if taken := uint64(d.Limit - d.Remaining); taken+others != l.Stats().Allowed {
					t.Errorf("got %d permits taken after Drain, want %d, which were granted", taken, l.Stats().Allowed-others)
				}
				time.Sleep(2 * time.Second) // the timers of permits end
			})
		})
	}
}

// TestAccountsAreBounded by MaxLocal. The one that was used longest ago is forgotten, and its permits
// come back.
func TestAccountsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Counted(t)
		l := must(New(must(store.Open(rdb, nil))(t), "n", []Policy{FixedWindow{Limit: 1_000_000, Window: time.Hour}},
			&Options{Budget: time.Minute, MaxLocal: 4, Prepaid: Prepaid{Most: 100, Term: time.Second}}))(t)
		for i := 0; i < 1000 || i < 2000 && current(l, "busy").Left() == 0; i++ { // the last request may take the last permit
			must(l.Take(t.Context(), "busy"))(t)
			synctest.Wait()
		}
		charged(t, l, "busy")
		granted := int64(l.Stats().Allowed)
		for i := range 20 {
			must(l.Take(t.Context(), fmt.Sprint(i)))(t)
		}
		if n := len(l.accounts.Subjects()); n != 4 || current(l, "busy") != nil {
			t.Errorf("accounts: got %d subjects stored, and the first %v, want 4, and it forgotten", n, current(l, "busy"))
		}
		time.Sleep(2 * time.Second)
		if d := must(l.Peek(t.Context(), "busy"))(t); d.Limit-d.Remaining != granted {
			t.Errorf("after a Term: got %d permits taken, want %d, which were granted", d.Limit-d.Remaining, granted)
		}
	})
}

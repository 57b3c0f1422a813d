package limit

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// charged returns the permits that a subject of the limiter has.
func charged(t *testing.T, l *Limiter, subject string) *permits {
	t.Helper()
	p := current(l, subject)
	if p == nil || p.left() <= 0 {
		t.Fatal("got no permits that are left, want some: this test is about them")
	}
	return p
}

// current returns the permits of a subject that requests take from, or nil.
func current(l *Limiter, subject string) *permits {
	return l.accounts.of[subject][l.signature].current.Load()
}

// TestPermitsEndBeforeTheirTermAndWindow, earlier by the most that clocks may differ.
func TestPermitsEndBeforeTheirTermAndWindow(t *testing.T) {
	t.Parallel()
	const ms = int64(time.Millisecond)
	for name, c := range map[string]struct {
		policy Policy
		lasts  int64 // of what ends the permits
		grain  int64
	}{
		"term":           {FixedWindow{Limit: 1_000_000, Window: time.Hour}, 1000 * ms, 0},
		"fixed window":   {FixedWindow{Limit: 1_000_000, Window: 800 * time.Millisecond}, 800 * ms, denialGrain},
		"sliding window": {SlidingWindow{Limit: 1_000_000, Window: 800 * time.Millisecond}, 800 * ms, denialGrain},
		"bucket":         {TokenBucket{Rate: 1000, Per: time.Second, Burst: 1_000_000}, 1000 * ms, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, c.policy, Prepaid{Most: 1000, Term: time.Second})
			l := f.process(t)
			began := l.accounts.now()
			for range 1000 { // no time passes
				must(l.Take(t.Context(), "s"))(t)
			}
			synctest.Wait()
			for i := 0; i < 100 && current(l, "s").left() == 0; i++ { // the last request may take the last permit
				must(l.Take(t.Context(), "s"))(t)
				synctest.Wait()
			}
			p := charged(t, l, "s")
			if got, want := p.end-began, c.lasts-c.lasts/denialDrift-c.grain; got != want {
				t.Errorf("%s: got permits that last for %v, want %v", name, time.Duration(got), time.Duration(want))
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
		left := charged(t, l, "s").left()
		if next := l.accounts.of["s"][l.signature].next.Load(); next != nil {
			left += next.left()
		}
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
		one := l.accounts.of["s"][l.signature]
		for _, p := range []*permits{one.current.Load(), one.next.Load()} {
			if p != nil && p.left() > 0 {
				t.Errorf("after the reset: got %d permits that Redis has forgotten, want none", p.left())
			}
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
		left := charged(t, l, "s").left()
		must(0, one.Refund(t.Context()))(t)
		must(0, three.Refund(t.Context()))(t)
		if got := charged(t, l, "s").left(); got != left+2 || calls.Load() != before {
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
	for name, soon := range map[string]func(t *testing.T, l *Limiter, at *around){
		"whose Term ends": func(t *testing.T, l *Limiter, at *around) {
			at.do.Store(&slow)
			time.Sleep(time.Duration(charged(t, l, "s").end - l.accounts.now() + 1))
		},
		"just being charged": func(t *testing.T, l *Limiter, at *around) {
			at.do.Store(&slow)
			for len(l.accounts.charges.all()) == 0 {
				must(l.Take(t.Context(), "s"))(t)
			}
		},
		"of a forgotten subject": func(t *testing.T, l *Limiter, _ *around) {
			clear(l.accounts.of)
			l.accounts.recent.Store(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, _, at := prepaidTo(t)
				soon(t, l, at)
				must(0, l.remote.Store.Drain(t.Context()))(t)
				at.do.Store(nil)
				d := must(l.Peek(t.Context(), "s"))(t)
				if taken := uint64(d.Limit - d.Remaining); taken != l.Stats().Allowed {
					t.Errorf("got %d permits taken after Drain, want %d, which were granted", taken, l.Stats().Allowed)
				}
				time.Sleep(2 * time.Second) // the timers of permits end
			})
		})
	}
}

// TestAccountsAreBounded by MaxLocal. A subject with permits stays if there is one
// without.
func TestAccountsAreBounded(t *testing.T) {
	t.Parallel()
	for range 20 { // maps have no order
		synctest.Test(t, func(t *testing.T) {
			rdb, _ := redistest.Counted(t)
			l := must(New(rdb, "n", []Policy{FixedWindow{Limit: 1_000_000, Window: time.Hour}},
				&Options{Budget: time.Minute, MaxLocal: 4, Prepaid: Prepaid{Most: 100, Term: time.Second}}))(t)
			for i := 0; i < 1000 || i < 2000 && current(l, "busy").left() == 0; i++ { // the last request may take the last permit
				must(l.Take(t.Context(), "busy"))(t)
				synctest.Wait()
			}
			charged(t, l, "busy")
			for i := range 20 {
				must(l.Take(t.Context(), fmt.Sprint(i)))(t)
			}
			if n := len(l.accounts.of); n != 4 {
				t.Errorf("accounts: got %d subjects stored, want 4", n)
			}
			charged(t, l, "busy")
			time.Sleep(2 * time.Second)
		})
	}
}

// TestAForgottenAccountIsNotUsed, because a Reset would not find it.
func TestAForgottenAccountIsNotUsed(t *testing.T) {
	t.Parallel()
	a := newAccounts(Prepaid{Most: 2, Term: time.Second}, 1) // has room for one
	for _, subject := range []string{"s", "s", "another", "s"} {
		if one := a.account(subject, "policies"); a.of[subject]["policies"] != one {
			t.Errorf("%s: got an account that was forgotten, want the one that is stored", subject)
		}
	}
}

// TestTheRateCountsEachRequest once: when permits are there, when the next permits take
// over, and when it waits for a charge.
func TestTheRateCountsEachRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Counted(t)
		slow, at := func() { time.Sleep(10 * time.Millisecond) }, new(around)
		at.do.Store(&slow)
		rdb.AddHook(at)
		l := must(New(rdb, "n", []Policy{FixedWindow{Limit: 1_000_000, Window: time.Hour}},
			&Options{Budget: time.Minute, Prepaid: Prepaid{Most: 20, Term: time.Minute}}))(t)
		const n = 1000
		for i := range n / 2 {
			must(l.Take(t.Context(), "s"))(t)
			must(l.TakeN(t.Context(), "s", 3))(t)
			if i < n/4 {
				time.Sleep(2 * time.Millisecond) // the next permits are there before the others are used up
			}
		}
		time.Sleep(time.Second)
		one := l.accounts.of["s"][l.signature]
		got := one.taken.Load()
		for _, p := range []*permits{one.current.Load(), one.next.Load()} {
			if p != nil {
				got += p.demand()
			}
		}
		if want := int64(4 * n / 2); got != want { // a rate is not computed before a quarter of the Term
			t.Errorf("the account's count: got a demand of %d, want %d", got, want)
		}
		time.Sleep(2 * time.Minute)
	})
}

// TestTheRateCountsWhatAResetEnds, because these requests were made.
func TestTheRateCountsWhatAResetEnds(t *testing.T) {
	t.Parallel()
	l := must(NewLocal("n", []Policy{FixedWindow{Limit: 1_000_000, Window: time.Hour}}, nil))(t)
	a := newAccounts(Prepaid{Most: 100, Term: time.Minute}, 1)
	one, p := a.account("s", l.signature), &permits{end: a.now() + int64(time.Minute), given: make([]atomic.Uint64, 1)}
	p.add(50)
	one.current.Store(p)
	for range 7 {
		p.take(a.now(), 3)
	}
	a.drop("s")
	if got := one.taken.Load(); got != 21 {
		t.Errorf("the account's count after the reset: got a demand of %d, want 21", got)
	}
}

package limit

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// around is a hook that does something before a script is sent and after it was answered,
// or loses the answer.
type around struct {
	redistest.CountingHook

	do, then atomic.Pointer[func()]
	lose     atomic.Pointer[error]
}

func (a *around) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		if do := a.do.Load(); do != nil {
			(*do)()
		}
		if lost := a.lose.Load(); lost != nil {
			cmd.SetErr(*lost)
			return *lost
		}
		err := next(ctx, cmd)
		if then := a.then.Load(); then != nil {
			(*then)()
		}
		return err
	}
}

// prepaidTo makes a limiter that has charged some permits ahead.
func prepaidTo(t *testing.T) (l *Limiter, calls *atomic.Int64, at *around) {
	t.Helper()
	rdb, calls := redistest.Counted(t)
	at = new(around)
	rdb.AddHook(at)
	l = must(New(must(store.Open(rdb, nil))(t), "n", []Policy{FixedWindow{Limit: 1_000_000, Window: time.Hour}},
		&Options{Budget: time.Minute, Fail: store.FailClosed, MaxLocal: 1, Prepaid: Prepaid{Most: 100, Term: time.Second}}))(t)
	for n := 0; n < 1000 || current(l, "s").Left() < 50; n++ {
		must(l.Take(t.Context(), "s"))(t)
		synctest.Wait()
	}
	return l, calls, at
}

// TestAnImpatientCallerChargesForOthers: the permits that it charges are for all callers,
// and the charge does not end with it.
func TestAnImpatientCallerChargesForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, calls, at := prepaidTo(t)
		time.Sleep(2 * time.Second) // they have ended
		slow := func() { time.Sleep(20 * time.Millisecond) }
		at.do.Store(&slow)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		if _, err := l.Take(ctx, "s"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("an impatient caller: got %v, want the end of its context", err)
		}
		time.Sleep(50 * time.Millisecond)
		before := calls.Load()
		if d, err := l.Take(t.Context(), "s"); err != nil || !d.Allowed || calls.Load() != before {
			t.Errorf("a second caller: got %v, %v and %d calls, want a permit and no call", d.Allowed, err, calls.Load()-before)
		}
	})
}

// TestAPanicOfAHookWhilePermitsAreCharged does not end the process, and permits are
// charged again after it.
func TestAPanicOfAHookWhilePermitsAreCharged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, calls, at := prepaidTo(t)
		var panicked atomic.Int64
		fail := func() {
			if panicked.Add(1) == 1 {
				panic("a hook")
			}
		}
		at.do.Store(&fail)
		take := func() {
			defer func() { _ = recover() }()
			_, _ = l.Take(t.Context(), "s")
			synctest.Wait()
		}
		for i := 0; i < 1000 && panicked.Load() == 0; i++ {
			take()
		}
		if panicked.Load() == 0 {
			t.Fatal("a hook that panics: got no call, want one")
		}
		before := calls.Load()
		for range 1000 {
			must(l.Take(t.Context(), "s"))(t)
		}
		if n := calls.Load() - before; n > 100 {
			t.Errorf("got %d calls for 1000 decisions after a panic, want 100 at most", n)
		}
	})
}

// TestEachPrepaidPermitCanBeGivenBack, however often it was granted again.
func TestEachPrepaidPermitCanBeGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, calls, _ := prepaidTo(t)
		before := calls.Load()
		const takes = 3000
		for i := range takes {
			one := must(l.Take(t.Context(), "s"))(t)
			if err := one.Refund(t.Context()); err != nil {
				t.Fatalf("refund %d: got %v, want no error", i, err)
			}
		}
		if n := calls.Load() - before; n > takes/50 {
			t.Errorf("calls: got %d for %d decisions and refunds, want at most %d", n, takes, takes/50)
		}
	})
}

// TestADenialDoesNotHidePermits: Redis may deny while this process has some permits left.
func TestADenialDoesNotHidePermits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, calls := redistest.Counted(t)
		l := must(New(rdb, "n", []Policy{FixedWindow{Limit: 1_000_000, Window: time.Hour}},
			&Options{Budget: time.Minute, RememberDenials: time.Minute, Prepaid: Prepaid{Most: 100, Term: time.Minute}}))(t)
		for range 1000 {
			must(l.Take(t.Context(), "s"))(t)
		}
		synctest.Wait()
		ready := func() bool {
			one, next := l.accounts.Held("s", l.set)
			return next != nil && one.Left() > 0
		}
		for i := 0; i < 1000 && !ready(); i++ { // or the next request might charge
			must(l.Take(t.Context(), "s"))(t)
			synctest.Wait()
		}
		at, epoch := l.memory.Epoch("s")
		denial := newRequest("s", 1, 1)
		denial.Readings[0] = kind.Reading{Denied: true, N: [4]int64{1_000_000, time.Hour.Milliseconds()}}
		l.memory.Keep(l.set, &denial.Request, at, epoch)
		before := calls.Load()
		if d := must(l.Take(t.Context(), "s"))(t); !d.Allowed || calls.Load() != before {
			t.Errorf("a cost below the denial: got Allowed %v after %d calls, want a permit that was charged", d.Allowed, calls.Load()-before)
		}
		if d := must(l.TakeN(t.Context(), "s", 500_000))(t); d.Allowed || calls.Load() != before {
			t.Errorf("a cost above what is charged: got Allowed %v after %d calls, want the denial that is remembered", d.Allowed, calls.Load()-before)
		}
		time.Sleep(2 * time.Minute)
	})
}

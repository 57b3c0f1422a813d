package behind

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
)

// lease is far longer than the tests: what is free before it ends was taken back.
const lease = 10 * time.Minute

// call is one call of a primitive, with what it needs made before.
type call struct {
	// ask makes the call. If the call was granted, ask gives the grant back.
	ask func(ctx context.Context) error
	// left returns what Redis still has of a call that failed; "" means nothing.
	left func(ctx context.Context) string
}

// prepare makes what a call needs.
type prepare func(t *testing.T, here, there *side, key string) call

// side is a store on one side of a proxy, with the primitives on it.
type side struct {
	limiter, open, local *limit.Limiter
	banning              *limit.Limiter
	slots, openSlots     *inflight.Limiter
	localSlots           *inflight.Limiter
	locker               *lock.Locker
	guard                *idempotency.Guard
	shop                 *stock.Stock
}

func newSide(t *testing.T, st *store.Store) *side {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s := new(side)
	var err error
	limiter := func(fail store.FailMode) (l *limit.Limiter) {
		l, err = limit.New(st, "l", []limit.Policy{limit.FixedWindow{Limit: 1000, Window: time.Hour}}, &limit.Options{Fail: fail})
		must(err)
		return l
	}
	slots := func(fail store.FailMode) (c *inflight.Limiter) {
		c, err = inflight.New(st, "c", 1, &inflight.Options{Fail: fail, Lease: lease})
		must(err)
		return c
	}
	s.limiter, s.open, s.local = limiter(store.FailClosed), limiter(store.FailOpen), limiter(store.FailLocal)
	s.banning, err = limit.New(st, "b", []limit.Policy{limit.KeepOnChange(limit.WithBan(thousand, limit.Ban{After: 10, Within: time.Minute, For: time.Minute}))}, &limit.Options{Fail: store.FailClosed, Holds: true, Overrides: true})
	must(err)
	s.slots, s.openSlots, s.localSlots = slots(store.FailClosed), slots(store.FailOpen), slots(store.FailLocal)
	s.locker, err = lock.New(st, "k", &lock.Options{Lease: lease, NoRenewal: true, RetryDelay: 100 * time.Millisecond})
	must(err)
	s.guard, err = idempotency.New(st, "g", idempotency.Retry{}, &idempotency.Options{Lease: lease})
	must(err)
	s.shop, err = stock.New(st, "s", &stock.Options{Lease: lease})
	must(err)
	return s
}

func (s *side) warm(ctx context.Context) error {
	return errors.Join(s.limiter.Warm(ctx), s.slots.Warm(ctx), s.locker.Warm(ctx), s.guard.Warm(ctx), s.shop.Warm(ctx))
}

// calls are the calls whose answer a proxy may replace. Each makes one for a key, on the
// side of the proxy, and looks at it from the other side. A new primitive joins here.
var calls = map[string]prepare{
	"limit that fails closed": func(_ *testing.T, here, _ *side, key string) call {
		return call{func(ctx context.Context) error { return degraded(here.limiter.Take(ctx, key)) }, nothing}
	},
	"limit that fails open": func(_ *testing.T, here, _ *side, key string) call {
		return call{func(ctx context.Context) error { return degraded(here.open.Take(ctx, key)) }, nothing}
	},
	"limit that fails local": func(_ *testing.T, here, _ *side, key string) call {
		return call{func(ctx context.Context) error { return degraded(here.local.Take(ctx, key)) }, nothing}
	},
	"all": func(_ *testing.T, here, there *side, key string) call {
		return call{func(ctx context.Context) error {
			_, err := limit.All(ctx, limit.Ask{Limiter: here.limiter, Subject: key}, limit.Ask{Limiter: here.limiter, Subject: key + "2"})
			return err
		}, nothing}
	},
	"refund": func(t *testing.T, here, there *side, key string) call {
		d := take(t, here, key, 100)
		return call{d.Refund, remaining(there, key, 1000)}
	},
	"settle": func(t *testing.T, here, there *side, key string) call {
		d := take(t, here, key, 100)
		return call{func(ctx context.Context) error { _, err := d.Settle(ctx, 250); return err }, remaining(there, key, 750)}
	},
	"slot that fails closed": func(_ *testing.T, here, there *side, key string) call { return slot(here.slots, there, key) },
	"slot that fails open":   func(_ *testing.T, here, there *side, key string) call { return slot(here.openSlots, there, key) },
	"slot that fails local":  func(_ *testing.T, here, there *side, key string) call { return slot(here.localSlots, there, key) },
	"lock": func(_ *testing.T, here, there *side, key string) call {
		return call{func(ctx context.Context) error {
			held, err := here.locker.Try(ctx, key)
			if err == nil {
				err = held.Release(ctx)
			}
			return err
		}, free(there, key)}
	},
	"release of a lock": func(t *testing.T, here, there *side, key string) call {
		held, err := here.locker.Try(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return call{held.Release, free(there, key)}
	},
	"extension of a lock": func(t *testing.T, here, there *side, key string) call {
		held, err := here.locker.Try(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return call{func(ctx context.Context) error { return held.Extend(ctx, lease) }, func(ctx context.Context) string {
			if err := errors.Join(held.Err(), held.Release(ctx)); err != nil {
				return err.Error()
			}
			return free(there, key)(ctx)
		}}
	},
	"tick of a job": func(_ *testing.T, here, there *side, key string) call {
		tick := time.Now()
		run := func(l *lock.Locker) func(ctx context.Context) (bool, error) {
			return func(ctx context.Context) (bool, error) {
				return l.Once(ctx, key, tick, lock.Never, func(context.Context) error { return nil })
			}
		}
		ran := false
		return call{func(ctx context.Context) (err error) { ran, err = run(here.locker)(ctx); return err }, func(ctx context.Context) string {
			if again, err := run(there.locker)(ctx); err != nil || again == ran {
				return fmt.Sprintf("a tick that ran %v runs %v, %v", ran, again, err)
			}
			return ""
		}}
	},
	"claim of a guard": func(_ *testing.T, here, there *side, key string) call {
		return call{func(ctx context.Context) error { return claimed(here.guard.Begin(ctx, key, "")) }, func(ctx context.Context) string {
			return text(claimed(there.guard.Begin(ctx, key, "")))
		}}
	},
	"conclusion of a guard": func(t *testing.T, here, there *side, key string) call {
		run, err := here.guard.Begin(t.Context(), key, "")
		if err != nil {
			t.Fatal(err)
		}
		return call{func(ctx context.Context) error { return run.Claim.Conclude(ctx, idempotency.DoneWith([]byte("17"))) }, func(ctx context.Context) string {
			if again, err := there.guard.Begin(ctx, key, ""); err != nil || string(again.Result) != "17" {
				return fmt.Sprintf("the result %q, %v", again.Result, err)
			}
			return ""
		}}
	},
	"claim that is given back": func(t *testing.T, here, there *side, key string) call {
		run, err := here.guard.Begin(t.Context(), key, "")
		if err != nil {
			t.Fatal(err)
		}
		return call{func(ctx context.Context) error { return run.Claim.Conclude(ctx, idempotency.NothingDone()) }, func(ctx context.Context) string {
			return text(claimed(there.guard.Begin(ctx, key, "")))
		}}
	},
	"reservation": func(t *testing.T, here, there *side, key string) call {
		return reservation(t, here, there, key, nil)
	},
	"sale": func(t *testing.T, here, there *side, key string) call {
		return reservation(t, here, there, key, &stock.ReserveOptions{Confirm: true})
	},
	"confirmation": func(t *testing.T, here, there *side, key string) call {
		r := reserved(t, here, there, key)
		return call{r.Confirm, level(there, key, stock.Level{Units: 10, Left: 9, Sold: 1})}
	},
	"cancellation": func(t *testing.T, here, there *side, key string) call {
		r := reserved(t, here, there, key)
		return call{r.Cancel, level(there, key, stock.Level{Units: 10, Left: 10})}
	},
}

func nothing(context.Context) string { return "" }

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// degraded returns why a decision was made without Redis.
func degraded(d limit.Decision, err error) error {
	if err == nil {
		err = d.Cause
	}
	return err
}

func take(t *testing.T, here *side, key string, cost int64) limit.Decision {
	t.Helper()
	d, err := here.limiter.TakeN(t.Context(), key, cost)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func remaining(there *side, key string, want int64) func(ctx context.Context) string {
	return func(ctx context.Context) string {
		if is, err := there.limiter.Peek(ctx, key); err != nil || is.Remaining != want {
			return fmt.Sprintf("%d remaining, %v, want %d", is.Remaining, err, want)
		}
		return ""
	}
}

func slot(c *inflight.Limiter, there *side, key string) call {
	return call{func(ctx context.Context) error {
		s, err := c.Try(ctx, key)
		if err != nil {
			return err
		}
		defer s.Release(ctx)
		return s.Cause
	}, func(ctx context.Context) string {
		if n, err := there.slots.InFlight(ctx, key); err != nil || n != 0 {
			return fmt.Sprintf("%d in flight, %v", n, err)
		}
		return ""
	}}
}

// free returns why a lock cannot be had; "" means that it is free.
func free(there *side, key string) func(ctx context.Context) string {
	return func(ctx context.Context) string {
		held, err := there.locker.Try(ctx, key)
		if err == nil {
			err = held.Release(ctx)
		}
		return text(err)
	}
}

func claimed(run idempotency.Answer, err error) error {
	if err == nil && run.Claim != nil {
		err = run.Claim.Conclude(context.Background(), idempotency.NothingDone())
	}
	return err
}

func opened(t *testing.T, there *side, key string) {
	t.Helper()
	if _, err := there.shop.Open(t.Context(), key, 10, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
}

func reservation(t *testing.T, here, there *side, key string, opts *stock.ReserveOptions) call {
	t.Helper()
	opened(t, there, key)
	return call{func(ctx context.Context) error {
		r, err := here.shop.Reserve(ctx, key, "b", "1", opts)
		if err == nil {
			err = r.Cancel(ctx)
		}
		return err
	}, level(there, key, stock.Level{Units: 10, Left: 10})}
}

func reserved(t *testing.T, here, there *side, key string) *stock.Reservation {
	t.Helper()
	opened(t, there, key)
	r, err := here.shop.Reserve(t.Context(), key, "b", "1", nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func level(there *side, key string, want stock.Level) func(ctx context.Context) string {
	return func(ctx context.Context) string {
		is, err := there.shop.Left(ctx, key)
		if is.Lifetime = 0; err != nil || is != want {
			return fmt.Sprintf("%+v, %v, want %+v", is, err, want)
		}
		return ""
	}
}

package quickstart

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
)

// wiring makes the gates of the routes. If Redis does not answer within the budget, a
// limit decides in the process, but locks, guards and stock refuse: so their budget is
// longer.
type wiring struct {
	redis  *store.Store
	budget time.Duration
	err    error // of the first gate that could not be made
}

// wire tells shadowed what a shadow policy would have denied.
func wire(rdb script.Client, budget time.Duration, shadowed func(limiter, policy string)) *wiring {
	st, err := store.Of(rdb)
	if err == nil {
		st.Observe(func(_ context.Context, e store.Event) {
			if e.Outcome == store.ShadowDenied {
				shadowed(e.Name, e.Policy)
			}
		})
	}
	return &wiring{redis: st, budget: budget, err: err}
}

func (w *wiring) failed(err error) bool {
	if w.err == nil {
		w.err = err
	}
	return err != nil
}

func (w *wiring) rateLimit(
	name string, key gate.Key, opts gate.RateLimitOptions, policies ...limit.Policy,
) gate.RateLimitGate {
	l, err := limit.New(w.redis, name, policies, &limit.Options{Budget: w.budget})
	if w.failed(err) {
		return nil
	}
	opts.OnError = report(slog.Default())
	return gate.RateLimit(l, key, &opts)
}

// rateLimits are limits by several keys at once, with a policy each.
func (w *wiring) rateLimits(name string, keys []gate.Key, policies ...limit.Policy) gate.Gate {
	limits := make([]gate.RateLimitGate, len(keys))
	for i, key := range keys {
		if limits[i] = w.rateLimit(name, key, gate.RateLimitOptions{}, policies[i]); limits[i] == nil {
			return nil
		}
	}
	return gate.RateLimits(limits...)
}

func (w *wiring) concurrency(name string, key gate.Key, most int64) gate.Gate {
	c, err := inflight.New(w.redis, name, most, &inflight.Options{Budget: w.budget})
	if w.failed(err) {
		return nil
	}
	return gate.Concurrency(c, key, &gate.ConcurrencyOptions{OnError: report(slog.Default())})
}

func (w *wiring) exclusive(name string, key gate.Key) gate.Gate {
	l, err := lock.New(w.redis, name, &lock.Options{Budget: min(4*w.budget, 30*time.Second)})
	if w.failed(err) {
		return nil
	}
	return gate.Exclusive(l, key, &gate.ExclusiveOptions{OnError: report(slog.Default())})
}

func (w *wiring) idempotent(name string, client gate.Key) gate.Gate {
	g, err := idempotency.New(w.redis, name, idempotency.Retry{}, &idempotency.Options{Budget: 4 * w.budget})
	if w.failed(err) {
		return nil
	}
	return gate.Idempotent(g, client, &gate.IdempotentOptions{OnError: report(slog.Default())})
}

// report logs what kind of error it was: its text may name keys and addresses.
func report(log *slog.Logger) func(gate.Request, error) {
	return func(r gate.Request, err error) {
		log.Error("a request was not decided as it should be", "route", r.Route(), "why", kind(err))
	}
}

// reportShadow logs what would have become of a request. It does not log the key.
func reportShadow(log *slog.Logger) func(limiter, policy string) {
	return func(limiter, policy string) {
		log.Info("a shadow policy would have denied a request", "limiter", limiter, "policy", policy)
	}
}

func kind(err error) string {
	for _, known := range []error{
		script.ErrNotExecuted, script.ErrMaybeExecuted, script.ErrConfiguration, script.ErrFailed,
		lock.ErrExpired, lock.ErrTakenByOther, lock.ErrLost,
		idempotency.ErrInDoubt, idempotency.ErrUnreadable, idempotency.ErrExpired, idempotency.ErrLost,
		stock.ErrDisagrees, stock.ErrUnknown, stock.ErrLapsed,
		callback.ErrUnverified, callback.ErrCannotVerify, callback.ErrMalformed, callback.ErrDeadline,
		gate.ErrWiring, gate.ErrBodyTooLarge, gate.ErrBodyBroken, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "another error"
}

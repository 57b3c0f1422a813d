package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
)

// endpoint is a route as a framework serves it.
type endpoint struct {
	methods []string
	path    string
	gate    gate.Gate
	work    work
}

// wiring is what the gates of all routes have in common.
type wiring struct {
	redis    script.Client // a store of neap, or a client
	budget   time.Duration
	shadowed func(limiter, policy string) // a shadow policy would have denied
}

// guard makes the gates of the routes.
func (w wiring) guard(routes []route) ([]endpoint, error) {
	endpoints := make([]endpoint, len(routes))
	for i, r := range routes {
		g, err := w.gate(r)
		if err != nil {
			return nil, err
		}
		endpoints[i] = endpoint{methods: []string{"GET", "HEAD"}, path: r.path, gate: g, work: r.work}
		if r.method != "" {
			endpoints[i].methods = []string{r.method}
		}
		if r.work == nil {
			endpoints[i].work = ok
		}
	}
	return endpoints, nil
}

func (w wiring) gate(r route) (gate.Gate, error) {
	onError := report(slog.Default())
	if r.exclusive {
		// Without an answer a limit is decided here, and a lock is refused.
		l, err := lock.New(w.redis, r.name(), &lock.Options{Budget: min(4*w.budget, lock.DefaultLease)})
		if err != nil {
			return nil, err
		}
		return gate.Exclusive(l, r.key, &gate.ExclusiveOptions{OnError: onError}), nil
	}
	if r.once {
		g, err := idempotency.New(w.redis, r.name(), &idempotency.Options{Budget: 4 * w.budget})
		if err != nil {
			return nil, err
		}
		return gate.Idempotent(g, r.key, &gate.IdempotentOptions{OnError: onError}), nil
	}
	if r.preset != nil {
		return w.callback(r)
	}
	if r.sells {
		return w.flash(r)
	}
	if r.inflight > 0 {
		c, err := limit.NewConcurrency(w.redis, r.name(), r.inflight,
			&limit.ConcurrencyOptions{Budget: w.budget})
		if err != nil {
			return nil, err
		}
		return gate.Concurrency(c, r.key, &gate.ConcurrencyOptions{OnError: onError}), nil
	}
	policies := r.policies
	for _, p := range r.shadow {
		policies = append(policies, limit.Shadow(p))
	}
	if len(policies) == 0 {
		return unlimited{}, nil
	}
	limiter, err := limit.New(w.redis, r.name(), policies,
		&limit.Options{Budget: w.budget, Observer: w.observe})
	if err != nil {
		return nil, err
	}
	return gate.RateLimit(limiter, r.key, &gate.RateLimitOptions{Cost: r.cost, Count: r.count, OnError: onError}), nil
}

func (w wiring) observe(_ context.Context, e store.Event) {
	if e.Outcome == store.ShadowDenied {
		w.shadowed(e.Name, e.Policy)
	}
}

// unlimited lets everything pass.
type unlimited struct{}

func (unlimited) Enter(gate.Request) gate.Pass { return gate.Pass{} }

// name is the path's fixed part in characters that a limiter's name may have.
func (r route) name() string {
	fixed, _, _ := strings.Cut(r.path, "/{")
	return strings.ReplaceAll(strings.TrimPrefix(fixed, "/"), "/", "-")
}

// report logs what kind of error it was: its text may name keys and addresses.
func report(log *slog.Logger) func(gate.Request, error) {
	return func(r gate.Request, err error) {
		log.Error("a request was not decided as it should be", "route", r.Route(), "why", kind(err))
	}
}

// reportShadow logs what would have become of a request, and not whose it was.
func reportShadow(log *slog.Logger) func(limiter, policy string) {
	return func(limiter, policy string) {
		log.Info("a shadow policy would have denied a request", "limiter", limiter, "policy", policy)
	}
}

func kind(err error) string {
	for _, known := range []error{
		script.ErrNotExecuted, script.ErrMaybeExecuted, script.ErrConfiguration, script.ErrFailed,
		lock.ErrExpired, lock.ErrTakenByOther, lock.ErrLost,
		idempotency.ErrInDoubt, idempotency.ErrNoResult, idempotency.ErrExpired, idempotency.ErrLost,
		stock.ErrDisagrees, stock.ErrUnknown, stock.ErrLapsed,
		callback.ErrUnverified, callback.ErrMalformed, callback.ErrDeadline,
		gate.ErrWiring, gate.ErrBodyTooLarge, gate.ErrBodyBroken, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "another error"
}

package redis_rate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

const (
	// name is the name of the limiter, and policy that of its policy. They stand in keys.
	name   = "redis_rate"
	policy = "rate"

	// budget is that of NewLimiter. A call without an answer is an error there, so it
	// waits longer than a limiter that decides by itself then.
	budget = time.Second

	// attempts is how often AllowAtMost asks, while others take what it has found.
	attempts = 8
)

var errLimiter = errors.New("redis_rate: a nil or zero Limiter: make one with NewLimiter")

// Limiter decides whether a key may take permits. It is safe for concurrent use. The zero
// Limiter is not usable: NewLimiter and New make one.
type Limiter struct {
	limits *limit.Limiter
	fault  error
}

// NewLimiter makes a limiter on a *redis.Client, a *redis.ClusterClient, a *redis.Ring or
// whatever else has their Process method. Its limiters on one Redis share their state. It
// sends nothing. If rdb cannot be used, each call returns why.
//
// A round trip takes at most a second (package limit names the exceptions). If Redis has not decided by then, the
// call is an error.
func NewLimiter(rdb redis.Scripter) *Limiter {
	client, ok := rdb.(script.Client)
	if !ok && rdb != nil {
		return &Limiter{fault: fmt.Errorf("redis_rate.NewLimiter: %w: a %T has no Process method: pass the client itself", script.ErrClient, rdb)}
	}
	l, err := New(client, &limit.Options{Budget: budget, Fail: store.FailClosed})
	if err != nil {
		return &Limiter{fault: err}
	}
	return l
}

// New is NewLimiter with options, on a client or a store.Store. Nil opts are the zero
// [limit.Options], in which Budget is 50 ms and Fail is store.FailLocal: without Redis
// each process then decides by itself, and the call is no error. Options.Prepaid cannot be
// used.
//
// The error joins every fault, each with its field and the remedy.
func New(rdb script.Client, opts *limit.Options) (*Limiter, error) {
	l, err := limit.New(rdb, name, []limit.Policy{policyOf(PerSecond(1))}, opts)
	if err != nil {
		return nil, fmt.Errorf("redis_rate.New: %w", err)
	}
	return &Limiter{limits: l}, nil
}

// Allow takes one permit: it is AllowN with an n of 1.
func (l *Limiter) Allow(ctx context.Context, key string, rate Limit) (*Result, error) {
	return l.AllowN(ctx, key, rate, 1)
}

// AllowN takes n permits or none. With an n of 0 it tells what there is. An n above the
// Burst is denied, however long the caller waits; its RetryAfter is how long so many
// permits take to come back.
//
// A denial is a Result and not an error. The error is ctx.Err() if the caller's context
// ended, limit.ErrSubject for an empty key, and a *script.Error if Redis could not
// answer. Any other error names an unusable number.
//
// It costs one round trip, and none if the Burst is below 1.
func (l *Limiter) AllowN(ctx context.Context, key string, rate Limit, n int) (*Result, error) {
	to, err := l.to(rate, n)
	switch {
	case err != nil:
		return nil, err
	case rate.Burst < 1:
		return barred(rate, n), nil
	case n > rate.Burst:
		d, err := to.TakeN(ctx, key, 0)
		if err != nil {
			return nil, err
		}
		return denied(rate, &d, timeOf(rate, float64(n)-float64(rate.Burst), d.ResetAfter)), nil
	}
	d, err := to.TakeN(ctx, key, int64(n))
	if err != nil {
		return nil, err
	}
	if !d.Allowed {
		return denied(rate, &d, d.RetryAfter), nil
	}
	return granted(rate, &d, n), nil
}

// AllowAtMost takes n permits, or as many as there are. With an n of 0 it tells whether
// there is one. Its RetryAfter is how long until there is one. The errors are those of
// AllowN.
//
// It costs one round trip if it grants n permits or none, and otherwise usually two; up to 8
// while others take what it has found.
func (l *Limiter) AllowAtMost(ctx context.Context, key string, rate Limit, n int) (*Result, error) {
	to, err := l.to(rate, n)
	switch {
	case err != nil:
		return nil, err
	case rate.Burst < 1:
		return barred(rate, 1), nil
	case n == 0:
		d, err := to.Peek(ctx, key)
		switch {
		case err != nil:
			return nil, err
		case !d.Allowed:
			return denied(rate, &d, d.RetryAfter), nil
		}
		return granted(rate, &d, 0), nil
	}
	want := min(n, rate.Burst)
	for left := attempts; ; left-- {
		d, err := to.TakeN(ctx, key, int64(want))
		switch {
		case err != nil:
			return nil, err
		case d.Allowed:
			return granted(rate, &d, want), nil
		case d.Remaining < 1 || left == 1:
			return denied(rate, &d, nextAfter(&d)), nil
		}
		want = min(want, int(d.Remaining))
	}
}

// Reset forgets what the key has taken. A key that has taken nothing is no error. It
// costs one round trip. Its errors are those of [limit.Limiter.Reset].
func (l *Limiter) Reset(ctx context.Context, key string) error {
	if err := l.usable(); err != nil {
		return err
	}
	_, err := l.limits.Reset(ctx, key)
	return err
}

func (l *Limiter) usable() error {
	switch {
	case l != nil && l.fault != nil:
		return l.fault
	case l == nil || l.limits == nil:
		return errLimiter
	}
	return nil
}

// to is the limiter that decides by these numbers. It is nil if there is nothing to decide.
func (l *Limiter) to(rate Limit, n int) (*limit.Limiter, error) {
	if err := l.usable(); err != nil {
		return nil, err
	}
	if err := check(rate, n); err != nil || rate.Burst < 1 {
		return nil, err
	}
	to, err := l.limits.With(policyOf(rate))
	if err != nil {
		return nil, fmt.Errorf("redis_rate: %v: %w", rate, err)
	}
	return to, nil
}

// Package ratesuite is what the documentation of redis_rate promises, as tests. They are
// run against contrib/redis_rate, and in bench/ against redis_rate itself as well.
package ratesuite

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// Limit and Result are those of a redis_rate package, field by field: their types convert
// to these.
type (
	// Limit are the numbers of a limit.
	Limit = struct {
		Rate   int
		Burst  int
		Period time.Duration
	}
	// Result is an answer, of a package whose Limit is L.
	Result[L any] struct {
		Limit      L
		Allowed    int
		Remaining  int
		RetryAfter time.Duration
		ResetAfter time.Duration
	}
)

type (
	// LimitType is the Limit of a package. It converts to Limit.
	LimitType interface {
		~struct {
			Rate   int
			Burst  int
			Period time.Duration
		}
		IsZero() bool
		String() string
	}
	// ResultType is the Result of a package. It converts to Result.
	ResultType[L any] interface {
		~struct {
			Limit      L
			Allowed    int
			Remaining  int
			RetryAfter time.Duration
			ResetAfter time.Duration
		}
	}
)

// Limiter has the methods of a redis_rate limiter, where L is the Limit and R the Result of
// its package.
type Limiter[L, R any] interface {
	Allow(ctx context.Context, key string, limit L) (*R, error)
	AllowN(ctx context.Context, key string, limit L, n int) (*R, error)
	AllowAtMost(ctx context.Context, key string, limit L, n int) (*R, error)
	Reset(ctx context.Context, key string) error
}

// Package is what a redis_rate package has beside its types.
type Package[L, R any] struct {
	NewLimiter                    func(rdb redis.UniversalClient) Limiter[L, R]
	PerSecond, PerMinute, PerHour func(rate int) L
}

// subject is a limiter under test, and a key that nothing else uses. A call that returns an
// error fails the test.
type subject struct {
	key         string
	allow       func(limit Limit) Result[Limit]
	allowN      func(limit Limit, n int) Result[Limit]
	allowAtMost func(limit Limit, n int) Result[Limit]
	reset       func()
	// another is the same limiter for another key, and twin another limiter for the same key.
	another, twin func() subject
}

// Place is where the suite runs.
type Place struct {
	// Connect is called once in each subtest.
	Connect func(t *testing.T) redis.UniversalClient
	// Prefix begins every key.
	Prefix string
	// Period is that of limits whose permits come back while a test waits for them. The permits of
	// all others take hours.
	Period time.Duration
	// Bubble says that each subtest has a bubble of testing/synctest of its own.
	Bubble bool
}

// Run runs the suite, in a subtest for each promise.
func Run[L LimitType, R ResultType[L]](t *testing.T, p Package[L, R], at Place) {
	t.Helper()
	at.run(t, "limits", func(t *testing.T) { checkLimits(t, p) })
	at.run(t, "errors", func(t *testing.T) { checkErrors(t, p, at.Connect(t), at.Prefix+":errors") })
	if at.Bubble { // a limiter asks until its budget ends, which takes no time there
		at.run(t, "away", func(t *testing.T) { checkAway(t, p, at.Prefix+":away") })
	}
	for _, promise := range promises {
		at.run(t, promise.name, func(t *testing.T) {
			promise.holds(t, open(t, p, at.Connect(t), at.Prefix+":"+promise.name), at.Period)
		})
	}
}

func (p Place) run(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		if p.Bubble {
			synctest.Test(t, test)
		} else {
			test(t)
		}
	})
}

func open[L LimitType, R ResultType[L]](t *testing.T, p Package[L, R], rdb redis.UniversalClient, key string) subject {
	t.Helper()
	l := p.NewLimiter(rdb)
	answer := func(r *R, err error) Result[Limit] {
		t.Helper()
		if err != nil {
			t.Errorf("got the error %v, want an answer", err)
			return Result[Limit]{}
		}
		own := Result[L](*r)
		return Result[Limit]{Limit(own.Limit), own.Allowed, own.Remaining, own.RetryAfter, own.ResetAfter}
	}
	return subject{
		key:   key,
		allow: func(limit Limit) Result[Limit] { t.Helper(); return answer(l.Allow(t.Context(), key, L(limit))) },
		allowN: func(limit Limit, n int) Result[Limit] {
			t.Helper()
			return answer(l.AllowN(t.Context(), key, L(limit), n))
		},
		allowAtMost: func(limit Limit, n int) Result[Limit] {
			t.Helper()
			return answer(l.AllowAtMost(t.Context(), key, L(limit), n))
		},
		reset: func() {
			t.Helper()
			if err := l.Reset(t.Context(), key); err != nil {
				t.Errorf("Reset: got the error %v, want none", err)
			}
		},
		another: func() subject { return open(t, p, rdb, key+":2") },
		twin:    func() subject { return open(t, p, rdb, key) },
	}
}

package ratesuite

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

var errGone = errors.New("there is no Redis")

func checkLimits[L LimitType, R any](t *testing.T, p Package[L, R]) {
	t.Helper()
	for _, c := range []struct {
		got  L
		want Limit
		text string
	}{
		{p.PerSecond(10), Limit{10, 10, time.Second}, "10 req/s (burst 10)"},
		{p.PerMinute(600), Limit{600, 600, time.Minute}, "600 req/m (burst 600)"},
		{p.PerHour(1), Limit{1, 1, time.Hour}, "1 req/h (burst 1)"},
		{L(Limit{3, 5, 90 * time.Second}), Limit{3, 5, 90 * time.Second}, "3 req/1m30s (burst 5)"},
	} {
		if Limit(c.got) != c.want || c.got.String() != c.text || c.got.IsZero() {
			t.Errorf("got %+v %q, which IsZero says is %t, want %+v %q and false", c.got, c.got, c.got.IsZero(), c.want, c.text)
		}
	}
	if !L(Limit{}).IsZero() {
		t.Error("the zero Limit: got IsZero false, want true")
	}
}

// checkErrors asks for what cannot be decided: an error, and no Result that a caller might take for one.
func checkErrors[L LimitType, R any](t *testing.T, p Package[L, R], rdb redis.UniversalClient, key string) {
	t.Helper()
	l := p.NewLimiter(rdb)
	wantErrors(t, "a Rate of 0", t.Context(), l, key, L(Limit{0, 1, time.Second}))
	wantErrors(t, "PerSecond(0)", t.Context(), l, key, p.PerSecond(0))
	ended, end := context.WithCancel(t.Context())
	end()
	for _, err := range wantErrors(t, "a context that has ended", ended, l, key, p.PerSecond(10)) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a context that has ended: got %v, want context.Canceled", err)
		}
	}
}

// checkAway asks a Redis that is not there, in a bubble.
func checkAway[L LimitType, R any](t *testing.T, p Package[L, R], key string) {
	t.Helper()
	gone := redis.NewClient(&redis.Options{Addr: "192.0.2.1:6379", MaxRetries: -1, Dialer: func(context.Context, string, string) (net.Conn, error) {
		return nil, errGone
	}})
	defer time.Sleep(time.Minute) // a bubble must not end before the goroutines of the pool
	defer gone.Close()
	l := p.NewLimiter(gone)
	wantErrors(t, "a Redis that is not there", t.Context(), l, key, p.PerSecond(10))
	if err := l.Reset(t.Context(), key); err == nil {
		t.Error("Reset with a Redis that is not there: got no error, want one")
	}
}

func wantErrors[L, R any](t *testing.T, what string, ctx context.Context, l Limiter[L, R], key string, limit L) (errs []error) { //nolint:revive // t is first in a helper
	t.Helper()
	for name, call := range map[string]func() (*R, error){
		"Allow":       func() (*R, error) { return l.Allow(ctx, key, limit) },
		"AllowN":      func() (*R, error) { return l.AllowN(ctx, key, limit, 2) },
		"AllowAtMost": func() (*R, error) { return l.AllowAtMost(ctx, key, limit, 2) },
	} {
		got, err := call()
		if err == nil || got != nil {
			t.Errorf("%s with %s: got %+v, %v, want an error alone", name, what, got, err)
		}
		errs = append(errs, err)
	}
	return errs
}

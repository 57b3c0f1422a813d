package gate_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// scripts counts the commands that a client sends.
type scripts struct {
	script.Client
	sent atomic.Int64
}

func (s *scripts) Process(ctx context.Context, cmd redis.Cmder) error {
	s.sent.Add(1)
	return s.Client.Process(ctx, cmd)
}

// TestRefusalCostsOneScriptForEachGate: a request that a gate further in refuses costs
// one script for each gate that has decided about it, and no more. The permits that the
// gates outside have taken stay taken.
func TestRefusalCostsOneScriptForEachGate(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		counted := &scripts{Client: rdb}
		limited := func(name string, n int64) *limit.Limiter {
			l, err := limit.New(storetest.At(t, counted, prefix), name, []limit.Policy{limit.FixedWindow{Name: name, Limit: n, Window: time.Hour}},
				&limit.Options{Budget: 10 * time.Second, Fail: store.FailClosed})
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Warm(t.Context()); err != nil {
				t.Fatal(err)
			}
			return l
		}
		locker, err := lock.New(storetest.At(t, counted, prefix), "held", &lock.Options{Budget: time.Minute, Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		held, err := locker.Try(t.Context(), "everyone")
		if err != nil {
			t.Fatal(err)
		}
		all, tenant, empty := limited("all", 100), limited("tenant", 100), limited("empty", 1)
		if _, err := empty.Take(t.Context(), "everyone"); err != nil {
			t.Fatal(err)
		}
		outside := gate.Chain(
			gate.RateLimit(all, everyone, nil), gate.RateLimit(tenant, everyone, &gate.RateLimitOptions{Count: gate.OnlyFailures}))
		for i, c := range []struct {
			inner          gate.Gate
			status, decide int
		}{
			{gate.RateLimit(empty, everyone, nil), 429, 3},
			{gate.Exclusive(locker, everyone, nil), 409, 3},
			{gate.RateLimit(empty, gate.ByHeader("X-Api-Key"), nil), 400, 2},
		} {
			before := counted.sent.Load()
			if p := gate.Chain(outside, c.inner).Enter(&request{}); status(p) != c.status {
				t.Errorf("got %d, want %d", status(p), c.status)
			}
			if n := counted.sent.Load() - before; n != int64(c.decide) {
				t.Errorf("a refusal with %d cost %d scripts, want %d", c.status, n, c.decide)
			}
			if a, b := used(t, all), used(t, tenant); a != int64(i+1) || b != int64(i+1) {
				t.Errorf("after a refusal with %d, %d and %d are used outside, want %d each", c.status, a, b, i+1)
			}
		}
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}, redistest.OnStandalone, redistest.OnCluster)
}

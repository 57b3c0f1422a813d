package redistest

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Prefix is a prefix for keys that no other test uses: neap:, beyond which the
// library may not reach, and characters of [a-z0-9-] that begin with the test's
// name, for whoever reads a MONITOR.
func Prefix(tb testing.TB) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(strings.TrimPrefix(tb.Name(), "Test")))
	return "neap:" + name[:min(len(name), 20)] + "-" + strings.ToLower(rand.Text()[:10])
}

// Prefix is [Prefix] for a test on this server. When the test ends it fails
// if a key under the prefix has no TTL.
func (s *Server) Prefix(tb testing.TB) string {
	prefix := Prefix(tb)
	tb.Cleanup(func() {
		if s.is(paused) {
			s.Resume(tb)
		}
		if s.is(running) {
			AssertNoImmortalKeys(tb, s.Admin(tb), prefix)
		}
	})
	return prefix
}

// Prefix is [Prefix] for a test on this cluster. When the test ends it fails
// if a key under the prefix has no TTL on any of the masters that run.
func (c *ClusterServer) Prefix(tb testing.TB) string {
	prefix := Prefix(tb)
	tb.Cleanup(func() {
		for _, s := range c.nodes {
			if s.is(paused) {
				s.Resume(tb)
			}
			if s.is(running) {
				AssertNoImmortalKeys(tb, s.Admin(tb), prefix)
			}
		}
	})
	return prefix
}

// AssertNoImmortalKeys fails the test for every key with prefix in its name
// that never expires, on the server or on every master of the cluster.
func AssertNoImmortalKeys(tb testing.TB, client redis.UniversalClient, prefix string) {
	tb.Helper()
	// The test's own context has ended when its cleanup runs.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // a nightly run has a million keys
	defer cancel()
	err := eachMaster(ctx, client, func(ctx context.Context, rdb redis.Cmdable) error {
		keys := rdb.Scan(ctx, 0, "*"+prefix+"*", 1000).Iterator()
		for keys.Next(ctx) {
			ttl, err := rdb.PTTL(ctx, keys.Val()).Result()
			if err != nil {
				return err
			}
			if ttl == -1 {
				tb.Errorf("redistest: the key %q never expires, want a time to live", keys.Val())
			}
		}
		return keys.Err()
	})
	if err != nil {
		tb.Errorf("redistest: looking for keys that never expire: %v", err)
	}
}

// eachMaster calls f for the server or, one after the other, for every master
// of the cluster.
func eachMaster(ctx context.Context, client redis.UniversalClient, f func(context.Context, redis.Cmdable) error) error {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return f(ctx, client)
	}
	var mu sync.Mutex
	return cluster.ForEachMaster(ctx, func(ctx context.Context, rdb *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		return f(ctx, rdb)
	})
}

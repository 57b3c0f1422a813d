package redistest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Dumped is every key under a prefix: its value, and when it expires.
type Dumped struct {
	Values  string
	Expires []time.Time
}

// Is reports whether no key has been written between the two. A key of an hour that is
// written again expires minutes later.
func (k Dumped) Is(other Dumped) bool {
	return k.Values == other.Values && slices.EqualFunc(k.Expires, other.Expires, func(a, b time.Time) bool {
		return a.Sub(b).Abs() < time.Minute
	})
}

// Dump returns what stands under a prefix.
func Dump(t *testing.T, admin redis.UniversalClient, prefix string) (k Dumped) {
	t.Helper()
	ctx := t.Context()
	for _, key := range KeysOf(t, admin, prefix) {
		kind := admin.Type(ctx, key).Val()
		value := admin.Get(ctx, key).Val()
		if kind == "list" {
			value = fmt.Sprint(admin.LRange(ctx, key, 0, -1).Val())
		}
		if kind == "zset" {
			value = fmt.Sprint(admin.ZRangeWithScores(ctx, key, 0, -1).Val())
		}
		k.Values += fmt.Sprintf("%s %s %s\n", key, kind, value)
		k.Expires = append(k.Expires, time.Now().Add(admin.PTTL(ctx, key).Val()))
	}
	return k
}

// KeysOf returns the keys under a prefix, in order, of all servers.
func KeysOf(t *testing.T, admin redis.UniversalClient, prefix string) []string {
	t.Helper()
	scan := func(ctx context.Context, c redis.Cmdable) (keys []string) {
		for it := c.Scan(ctx, 0, prefix+"*", 1000).Iterator(); it.Next(ctx); {
			keys = append(keys, it.Val())
		}
		return keys
	}
	cluster, ok := admin.(*redis.ClusterClient)
	if !ok {
		return slices.Sorted(slices.Values(scan(t.Context(), admin)))
	}
	found := make(chan []string, 16)
	if err := cluster.ForEachMaster(t.Context(), func(ctx context.Context, c *redis.Client) error {
		found <- scan(ctx, c)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	close(found)
	var keys []string
	for some := range found {
		keys = append(keys, some...)
	}
	slices.Sort(keys)
	return keys
}

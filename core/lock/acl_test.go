package lock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestWithoutEval makes all calls of a Locker. A lock that is held stays held.
func TestWithoutEval(t *testing.T) {
	t.Parallel()
	var held *lock.Lock
	storetest.WithoutEval(t, func(rdb *redis.Client, prefix string) map[string]func(context.Context) error {
		l, fn := locker(t, rdb, prefix, nil), func(context.Context) error { return nil }
		var err error
		if held, err = l.Try(t.Context(), "held"); err != nil {
			t.Fatal(err)
		}
		return map[string]func(context.Context) error{
			"Warm": l.Warm,
			"Try": func(ctx context.Context) error {
				held, err := l.Try(ctx, "try")
				if err == nil {
					err = held.Release(ctx)
				}
				return err
			},
			"Do":           func(ctx context.Context) error { return l.As("me").Do(ctx, "do", fn) },
			"Inspect":      func(ctx context.Context) error { _, err := l.Inspect(ctx, "do"); return err },
			"ForceRelease": func(ctx context.Context) error { _, err := l.ForceRelease(ctx, "do"); return err },
			"Extend":       func(ctx context.Context) error { return held.Extend(ctx, time.Minute) },
			"Once":         func(ctx context.Context) error { _, err := l.Once(ctx, "job", time.Now(), lock.Again, fn); return err },
		}
	})
	if held.Err() != nil {
		t.Errorf("a lock that is held: got Err %v, want nil", held.Err())
	}
	if err := held.Release(t.Context()); err != nil {
		t.Errorf("its release: got %v, want no error", err)
	}
}

// TestEachScriptPermissionIsNeeded takes one permission after the other from the
// documented line. Each time a call fails, and its error says what is missing.
func TestEachScriptPermissionIsNeeded(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	prefix := srv.Prefix(t)
	fn := func(context.Context) error { return nil }
	for i, right := range strings.Fields("+hdel +hkeys +hlen +hmget +hset +pexpire +pttl +time +del") {
		user := redistest.NewUser(t, redistest.Without(t, right), srv)
		key := "key" + string(rune('a'+i))
		full, err := locker(t, srv.Client(t), prefix, nil).As("me").Try(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		l := locker(t, srv.Client(t, func(o *redis.Options) { o.Username = user }), prefix, nil)
		_, forced := l.ForceRelease(t.Context(), key)
		_, inspected := l.Inspect(t.Context(), key)
		done := l.Do(t.Context(), "other-"+key, fn)
		held, tried := l.As("me").Try(t.Context(), "third-"+key)
		if tried == nil {
			tried = errors.Join(held.Extend(t.Context(), 5*time.Minute), held.Release(t.Context()))
		}
		past, cancel := context.WithCancel(t.Context())
		_, once := l.Once(past, key, time.Now(), lock.Never, func(context.Context) error { cancel(); return nil })
		cancel()
		all := errors.Join(forced, inspected, done, tried, once)
		if right == "+del" { // needed only in the background, to take back a start that no caller was told of
			if all != nil {
				t.Errorf("without %s: got %v, want no error: only the background needs it", right, all)
			}
		} else if all == nil || !strings.Contains(all.Error(), "script: ") {
			t.Errorf("without %s: got %v, want the error of a script", right, all)
		}
		_ = full.Release(t.Context())
	}
}

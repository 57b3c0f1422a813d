package lock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// TestWithoutEval uses a Redis user that may run only the scripts that an admin has
// loaded, with the permissions of the documented line. All calls of a Locker work for it.
// On a server that has lost the scripts, each call returns that error at once.
func TestWithoutEval(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	user := redistest.NewUser(t, redistest.LoadedRules(), srv)
	l := locker(t, srv.Client(t, func(o *redis.Options) { o.Username = user }), prefix, nil)
	ctx, fn := t.Context(), func(context.Context) error { return nil }
	srv.LoadScripts(t)
	held, err := l.Try(ctx, "held")
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"Warm": func() error { return l.Warm(ctx) },
		"Try": func() error {
			held, err := l.Try(ctx, "try")
			if err == nil {
				err = held.Release(ctx)
			}
			return err
		},
		"Do":           func() error { return l.As("me").Do(ctx, "do", fn) },
		"Inspect":      func() error { _, err := l.Inspect(ctx, "do"); return err },
		"ForceRelease": func() error { _, err := l.ForceRelease(ctx, "do"); return err },
		"Extend":       func() error { return held.Extend(ctx, time.Minute) },
		"Once":         func() error { _, err := l.Once(ctx, "job", time.Now(), lock.Again, fn); return err },
	} {
		srv.LoadScripts(t)
		if err := call(); err != nil {
			t.Errorf("%s with the scripts loaded: got %v, want no error", name, err)
		}
		if err := admin.ScriptFlush(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		stood := redistest.Witness(t)
		began := time.Now()
		if err := call(); !errors.Is(err, script.ErrConfiguration) || !strings.Contains(err.Error(), "'eval'") {
			t.Errorf("%s without its script: got %v, want ErrConfiguration that names 'eval'", name, err)
		}
		if took := time.Since(began); took > 8*time.Second+stood() {
			t.Errorf("%s without its script: got the error after %v, want it within 8s: it was tried again",
				name, took)
		}
	}
	if held.Err() != nil {
		t.Errorf("a lock that is held: got Err %v, want nil", held.Err())
	}
	srv.LoadScripts(t)
	if err := held.Release(ctx); err != nil {
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

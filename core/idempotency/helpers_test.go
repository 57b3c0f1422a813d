package idempotency_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

// soon is the bound for what should happen quickly.
const soon = 20 * time.Second

var (
	beginSHA    = script.FromFS(lua.FS, "guard_begin.lua").SHA()
	completeSHA = script.FromFS(lua.FS, "guard_complete.lua").SHA()
	abandonSHA  = script.FromFS(lua.FS, "guard_abandon.lua").SHA()
)

// warm loads the scripts, so that each call is one EVALSHA.
func warm(t testing.TB, guards ...*idempotency.Guard) {
	t.Helper()
	for _, g := range guards {
		if err := g.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// isFree waits until a key can be claimed as if for the first time, and gives the claim
// back.
func isFree(t testing.TB, g *idempotency.Guard, key string) {
	t.Helper()
	redistest.Await(t, soon, key+" to be free", func() bool {
		run, err := g.Begin(t.Context(), key, "")
		c := run.Claim
		switch {
		case errors.Is(err, idempotency.ErrInFlight):
			return false
		case err != nil:
			t.Errorf("%s: Begin: got %v, want a claim", key, err)
			return true
		}
		if c.Attempt() != 1 {
			t.Errorf("%s: got attempt %d, want 1", key, c.Attempt())
		}
		if _, err := g.Forget(t.Context(), key); err != nil {
			t.Error(err)
		}
		_ = c.Conclude(t.Context(), idempotency.NothingDone())
		return true
	})
}

// left waits until guards have nothing left to do.
func left(t testing.TB, guards ...*idempotency.Guard) {
	t.Helper()
	redistest.Await(t, time.Minute, "the end of all", func() bool {
		for _, g := range guards {
			if s := g.Stats(); s.Running+s.Undoing+s.Concluding > 0 {
				return false
			}
		}
		return true
	})
}

// isDone waits until a key is done, within a bound.
func isDone(t testing.TB, within time.Duration, g *idempotency.Guard, key, want string) {
	t.Helper()
	redistest.Await(t, within, key+" to be done", func() bool {
		r, err := g.Inspect(t.Context(), key)
		return err == nil && r.State == idempotency.Done
	})
	replayed(t, g, key, "", want)
}

// dead writes the record of a run whose lease has ended.
func dead(t testing.TB, rdb redis.UniversalClient, prefix, key string) {
	t.Helper()
	g := guard(t, rdb, prefix, &idempotency.Options{DoubtRetention: time.Hour, Retention: time.Hour})
	if _, err := g.Forget(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	r := "pending 7 1 1000 50 somebody -\n"
	if err := rdb.Set(t.Context(), nameOf(prefix, key), r, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
}

// lapsed ends the lease of a run, as if it had not been renewed.
func lapsed(t testing.TB, admin redis.UniversalClient, prefix, key string) {
	t.Helper()
	name := nameOf(prefix, key)
	line, err := admin.Get(t.Context(), name).Result()
	words := strings.Split(line, " ")
	if err != nil || len(words) != 7 || words[0] != "pending" {
		t.Fatalf("%s: got %q, %v, want a record that is pending", key, line, err)
	}
	words[3] = "1"
	if err := admin.Set(t.Context(), name, strings.Join(words, " "), redis.KeepTTL).Err(); err != nil {
		t.Fatal(err)
	}
}

// inBubble returns a client of a miniredis that uses the clock of the bubble.
func inBubble(t *testing.T) *redis.Client {
	t.Helper()
	m := redistest.Bubble(t)
	return redistest.BubbleClient(t, m)
}

// nameOf returns the name of a key's record in Redis, for a key that needs no hash.
func nameOf(prefix, key string) string { return prefix + ":guard:test:{" + key + "}" }

// unrun is a function that must not run.
func unrun(t testing.TB) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) {
		t.Error("fn was called, want no call")
		return []byte("it ran"), nil
	}
}

// policies are one of each kind. Reconcile finds that nothing was done.
var policies = map[string]idempotency.Policy{
	"retry":  idempotency.Retry{},
	"reject": idempotency.Reject{},
	"reconcile": idempotency.Reconcile{Find: func(context.Context, *idempotency.Claim) (idempotency.Outcome, error) {
		return idempotency.NothingDone(), nil
	}},
}

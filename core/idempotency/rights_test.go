package idempotency_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// everything makes each call of a Guard.
func everything(g *idempotency.Guard) map[string]func(ctx context.Context) error {
	claimed := func(ctx context.Context, key string, then func(c *idempotency.Claim) error) error {
		run, err := g.Begin(ctx, key, "")
		if err != nil {
			return err
		}
		c := run.Claim
		return errors.Join(then(c), forget(ctx, g, key))
	}
	return map[string]func(ctx context.Context) error{
		"Warm": g.Warm,
		"Begin": func(ctx context.Context) error {
			return claimed(ctx, "begin", func(*idempotency.Claim) error { return nil })
		},
		"Renew": func(ctx context.Context) error {
			return claimed(ctx, "renew", func(c *idempotency.Claim) error { return c.Renew(ctx) })
		},
		"Complete": func(ctx context.Context) error {
			return claimed(ctx, "complete", func(c *idempotency.Claim) error { return c.Conclude(ctx, idempotency.DoneWith(nil)) })
		},
		"Abandon": func(ctx context.Context) error {
			return claimed(ctx, "abandon", func(c *idempotency.Claim) error { return c.Conclude(ctx, idempotency.NothingDone()) })
		},
		"Do": func(ctx context.Context) error {
			_, err := g.Do(ctx, "do", func(context.Context) ([]byte, error) { return nil, nil })
			return errors.Join(err, forget(ctx, g, "do"))
		},
		"Inspect": func(ctx context.Context) error {
			_, err := g.Inspect(ctx, "doubt")
			return err
		},
		"Resolve": func(ctx context.Context) error {
			return claimed(ctx, "resolve", func(c *idempotency.Claim) error {
				return errors.Join(c.Conclude(ctx, idempotency.Unknown()), g.Resolve(ctx, "resolve", idempotency.NothingDone()))
			})
		},
	}
}

func forget(ctx context.Context, g *idempotency.Guard, key string) error {
	_, err := g.Forget(ctx, key)
	return err
}

// TestWithoutEval makes all calls of a Guard.
func TestWithoutEval(t *testing.T) {
	t.Parallel()
	storetest.WithoutEval(t, func(rdb *redis.Client, prefix string) map[string]func(context.Context) error {
		return everything(guardOf(t, rdb, prefix, idempotency.Reject{}, nil))
	})
}

// TestEachScriptPermissionIsNeeded takes one permission after the other from the
// documented line. Each time a call fails, and its error says what is missing.
func TestEachScriptPermissionIsNeeded(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	prefix := srv.Prefix(t)
	for right := range strings.FieldsSeq("+get +set +pexpire +pttl +time +del") {
		user := redistest.NewUser(t, redistest.Without(t, right), srv)
		g := guardOf(t, srv.Client(t, func(o *redis.Options) { o.Username = user }), prefix, idempotency.Reject{}, nil)
		var all error
		for _, call := range everything(g) {
			all = errors.Join(all, call(t.Context()))
		}
		// PTTL is used only for a record that another caller has.
		begin(t, guard(t, srv.Client(t), prefix, nil), "of-another"+right, "")
		if _, err := g.Begin(t.Context(), "of-another"+right, ""); !errors.Is(err, idempotency.ErrInFlight) {
			all = errors.Join(all, err)
		}
		if all == nil || !strings.Contains(all.Error(), "script: ") {
			t.Errorf("without %s: got %v, want an error of a script", right, all)
		}
	}
}

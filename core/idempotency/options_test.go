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
)

// These are the defaults, as the documentation of Options tells them.
const (
	defaultLease          = 30 * time.Second
	defaultRetention      = 24 * time.Hour
	defaultDoubtRetention = 30 * 24 * time.Hour
)

func TestBadConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { rdb.Close() })
	asks := func(context.Context, *idempotency.Claim) (idempotency.Outcome, error) {
		return idempotency.Unknown(), nil
	}
	retry := idempotency.Retry{}
	for _, fine := range []struct {
		policy idempotency.Policy
		opts   *idempotency.Options
	}{
		{retry, nil}, {idempotency.Reject{}, nil}, {idempotency.Reconcile{Find: asks}, nil},
		{retry, &idempotency.Options{Lease: 24 * time.Hour}},
	} {
		if g, err := idempotency.New(rdb, "n", fine.policy, fine.opts); err != nil || g.Name() != "n" {
			t.Errorf("%+v: got %v, want a guard of the name n", fine, err)
		}
	}
	type options = idempotency.Options
	for name, c := range map[string]struct {
		policy idempotency.Policy
		opts   *options
		want   []string // the field and its remedy
	}{
		"budget":          {retry, &options{Budget: -1}, []string{"Budget is -1ns", "use 1ms to 1h0m0s, or 0 for 250ms"}},
		"short lease":     {retry, &options{Lease: 50*time.Millisecond - 1}, []string{"Lease is 49.999999ms", "use 50ms to 24h0m0s, or 0 for 30s"}},
		"short retention": {retry, &options{Retention: time.Second - 1}, []string{"Retention is", "use 1s to 8784h0m0s, or 0 for 24h0m0s"}},
		"below the lease": {retry, &options{Lease: time.Minute, Retention: time.Second}, []string{"Retention is 1s", "at least the Lease, 1m0s"}},
		"short doubts":    {retry, &options{DoubtRetention: time.Hour}, []string{"DoubtRetention is 1h0m0s", "at least the Retention, 24h0m0s"}},
		"wait":            {retry, &options{Wait: -1}, []string{"Wait is -1ns", "or 0 for 10s"}},
		"delay":           {retry, &options{RetryDelay: time.Millisecond}, []string{"RetryDelay is 1ms", "use 5ms", "or 0 for 100ms"}},
		"no policy":       {nil, nil, []string{"policy is nil", "Retry{}", "Reject{}", "Reconcile{Find: …}", "use one of them"}},
		"a pointer":       {(*idempotency.Retry)(nil), nil, []string{"policy is a *idempotency.Retry", "use Retry{}"}},
		"a user's own":    {struct{ idempotency.Reject }{}, nil, []string{"policy is a struct", "Reject{}"}},
		"nobody to ask":   {idempotency.Reconcile{}, nil, []string{"Reconcile.Find is nil", "give it a function"}},
		"everything at once": {nil, &options{
			Budget: -1, Lease: -1, Retention: -1, DoubtRetention: -1, Wait: -1, RetryDelay: -1,
		}, []string{"idempotency.New: ", "Budget", "Lease", "or 0 for 24h0m0s", "DoubtRetention", "policy", "Wait", "RetryDelay"}},
	} {
		g, err := idempotency.New(rdb, "n", c.policy, c.opts)
		if g != nil {
			t.Errorf("%s: got a guard, want none", name)
		}
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got the error %v, want %q in it", name, err, want)
			}
		}
	}
}

// TestForeignRecordsAreRefused: a key that something else wrote is not taken for a
// record, and does not change.
func TestForeignRecordsAreRefused(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		ctx := t.Context()
		g := guard(t, rdb, prefix, nil)
		var subject, key string
		text := func(value string) func() { return func() { admin.Set(ctx, key, value, time.Hour) } }
		for name, put := range map[string]func(){
			"a word": text("token"), "nothing": text(""), "a line": text("done of nobody\n"), "no number": text("done x 1 0 0 o -\np"),
			"no state": text("odd 1 1 0 0 o -\n"), "a hash": func() { admin.HSet(ctx, key, "a", "b") }, "a list": func() { admin.RPush(ctx, key, "a") },
		} {
			subject = strings.ReplaceAll(name, " ", "-") // a guard of its own, because a conclusion that failed goes on
			key = prefix + ":guard:test:{" + subject + "}"
			c := begin(t, g, subject, "")
			admin.Del(ctx, key)
			put()
			admin.PExpire(ctx, key, time.Hour)
			before := admin.Dump(ctx, key).Val()
			if run, err := g.Begin(ctx, subject, ""); run.Claim != nil || run.Result != nil || !errors.Is(err, script.ErrFailed) {
				t.Errorf("%s: Begin: got a claim %t, the result %q, %v, want neither, and %v",
					name, run.Claim != nil, run.Result, err, script.ErrFailed)
			}
			if err := c.Renew(ctx); err == nil {
				t.Errorf("%s was renewed, want an error", name)
			}
			if err := c.Conclude(ctx, idempotency.DoneWith(nil)); !errors.Is(err, idempotency.ErrLost) && !errors.Is(err, script.ErrFailed) {
				t.Errorf("%s: Conclude: got %v, want %v or %v", name, err, idempotency.ErrLost, script.ErrFailed)
			}
			if err := g.Resolve(ctx, subject, idempotency.NothingDone()); err == nil {
				t.Errorf("%s was resolved, want an error", name)
			}
			if after := admin.Dump(ctx, key).Val(); after != before {
				t.Errorf("%s became %q, want %q as it was", name, after, before)
			}
		}
	})
}

package idempotency_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

// TestRetentions: a run that may come to be in doubt is remembered for as long as one in
// doubt, before and after a renewal. Everything else is remembered for the retention.
func TestRetentions(t *testing.T) {
	t.Parallel()
	const retention, doubts = 2 * time.Hour, 5 * time.Hour
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		for policy, its := range policies {
			g := guardOf(t, rdb, prefix, its, &idempotency.Options{Retention: retention, DoubtRetention: doubts})
			lives := func(key, when string, want time.Duration) {
				t.Helper()
				if r, err := g.Inspect(t.Context(), key); err != nil || r.Expires > want || r.Expires < want-time.Hour {
					t.Errorf("%s, %s: got it remembered for %v, %v, want %v", policy, when, r.Expires, err, want)
				}
			}
			keep := doubts
			if policy == "retry" {
				keep = retention
			}
			for when, c := range map[string]struct {
				outcome idempotency.Outcome
				want    time.Duration
			}{
				"done": {idempotency.DoneWith(nil), retention}, "without": {idempotency.DoneWithout(), retention},
				"nothing": {idempotency.NothingDone(), retention}, "unknown": {idempotency.Unknown(), keep},
			} {
				key := policy + "-" + when
				claim := begin(t, g, key, "")
				lives(key, "begun", keep)
				if err := claim.Renew(t.Context()); err != nil {
					t.Error(err)
				}
				lives(key, "renewed", keep)
				if err := claim.Conclude(t.Context(), c.outcome); err != nil {
					t.Error(err)
				}
				lives(key, when, c.want)
			}
		}
	})
}

// TestBadFingerprints: a fingerprint that cannot stand in the record is refused.
func TestBadFingerprints(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		g := guard(t, rdb, prefix, nil)
		for _, print := range []string{"-", " ", "a b", "a\n", "\x00", "\x7f", "é", strings.Repeat("x", 129)} {
			for name, ask := range map[string]func(context.Context, string, string) (idempotency.Answer, error){"Begin": g.Begin, "Await": g.Await} {
				if run, err := ask(t.Context(), "key", print); run.Claim != nil || !errors.Is(err, idempotency.ErrFingerprint) {
					t.Errorf("%s of %q: got a claim %t, %v, want none, and %v",
						name, print, run.Claim != nil, err, idempotency.ErrFingerprint)
				}
			}
		}
		for i, print := range []string{"!", "~", "--", "%S+", strings.Repeat("~", 128)} {
			key := strings.Repeat("k", i+1)
			if err := begin(t, g, key, print).Conclude(t.Context(), idempotency.DoneWith([]byte(print))); err != nil {
				t.Error(err)
			}
			replayed(t, g, key, print, print)
		}
	})
}

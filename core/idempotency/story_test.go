package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/storetest"
)

// story is what happens to one key: guards of each policy with different leases and
// retentions, claims, calls that come late or from nowhere, operators, and a clock that
// moves.
type story struct {
	*judge
	rng    *rand.Rand
	guards []*idempotency.Guard
	stats  []idempotency.Stats // the stats that the guards should have
	claims []*claimed
	finds  found
	fails  error
	asked  int
}

type claimed struct {
	*idempotency.Claim
	of     int
	err    error // what Err says
	cause  error // what its contexts say
	doubts bool  // it was concluded, and is in doubt
	over   bool  // it was concluded
}

// found is an outcome in the words of the model.
type found struct {
	idempotency.Outcome
	state  string // "" for Unknown
	result string
}

const hour = int64(3_600_000)

// These are the leases and retentions of the guards, in hours.
var (
	policyNames = []string{"retry", "reject", "reconcile"}
	leases      = []int64{1, 2, 3}
	retentions  = []int64{5, 6, 7}
	doubts      = []int64{40, 50, 60}
)

var errBooks = errors.New("the books are closed")

func newStory(t *testing.T, p *place, rng *rand.Rand, prefix, subject string, seen map[string]int) *story {
	t.Helper()
	h := &story{
		judge: &judge{place: p, key: prefix + ":guard:test:{" + subject + "}", seen: seen},
		rng:   rng, stats: make([]idempotency.Stats, len(policyNames)),
	}
	for i, name := range policyNames {
		opts := &idempotency.Options{
			Budget: 10 * time.Second,
			Lease:  time.Duration(leases[i]) * time.Hour, Retention: time.Duration(retentions[i]) * time.Hour,
			DoubtRetention: time.Duration(doubts[i]) * time.Hour,
		}
		policy := policies[name]
		if name == "reconcile" {
			policy = idempotency.Reconcile{Find: h.reconcile}
		}
		g, err := idempotency.New(storetest.At(t, h.judge, prefix), "test", policy, opts)
		if err != nil {
			t.Fatal(err)
		}
		h.guards = append(h.guards, g)
	}
	return h
}

func (h *story) outcome() found {
	switch h.rng.IntN(5) {
	case 0, 4:
		return found{idempotency.NothingDone(), "free", ""}
	case 1:
		return found{idempotency.DoneWithout(), "gone", ""}
	case 2:
		return found{idempotency.Unknown(), "", ""}
	}
	result := fmt.Sprintf("result %03d\n\x00", h.rng.IntN(1000))[:h.rng.IntN(13)]
	return found{idempotency.DoneWith([]byte(result)), "done", result}
}

func (h *story) reconcile(ctx context.Context, c *idempotency.Claim) (idempotency.Outcome, error) {
	h.asked++
	if at, ok := idempotency.FromContext(ctx); !ok || at != c || c.Err() != nil || h.model.state != "asking" {
		return idempotency.Unknown(), h.blame("Reconcile was asked while the record is %s, with %v, "+
			"want asking, its claim, and no error", h.model.state, c.Err())
	}
	return h.finds.Outcome, h.fails
}

func (h *story) step(t *testing.T) {
	t.Helper()
	switch n := h.rng.IntN(40); {
	case n < 8:
		h.begin(t)
	case n < 14 && len(h.claims) > 0:
		h.claim(t, h.claims[max(0, len(h.claims)-1-h.rng.IntN(3))])
	case n == 14:
		h.resolve(t)
	case n == 15 && h.rng.IntN(2) == 0:
		h.forget(t)
	case n == 16:
		h.inspect(t)
	case n < 33:
		h.stray(t)
	default:
		h.clock(t)
	}
	if h.fault != nil {
		t.Fatalf("%v\nafter\n%s", h.fault, strings.Join(h.told[max(0, len(h.told)-12):], "\n"))
	}
}

func (h *story) wrong(format string, args ...any) { _ = h.blame(format, args...) }

func (h *story) subject() string {
	return strings.TrimSuffix(h.key[strings.Index(h.key, "{")+1:], "}")
}

package usecases

import (
	"context"
	"errors"
	"testing"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/gatefake"
)

// TestConsume acknowledges a message that was paid or parked, and no other: not by the error
// of another guard, which pay or Find has asked.
func TestConsume(t *testing.T) {
	t.Parallel()
	rdb := gatefake.Redis(t)
	away := errors.New("the bank is away")
	for name, c := range map[string]struct {
		policy idempotency.Policy
		fails  error // of pay, at the first delivery
		parked bool  // at the second; otherwise it is paid
	}{
		"pay fails":                            {idempotency.Retry{}, away, false},
		"pay asks a guard that has no result":  {idempotency.Retry{}, idempotency.ErrNoResult, false},
		"pay asks a guard that is in doubt":    {idempotency.Retry{}, idempotency.ErrInDoubt, false},
		"it is in doubt":                       {idempotency.Reject{}, away, true},
		"Find asks a guard that has no result": {idempotency.Reconcile{Find: withoutResult}, away, true},
	} {
		guard, err := idempotency.New(rdb, "messages", c.policy, nil)
		if err != nil {
			t.Fatal(err)
		}
		runs, parked := 0, 0
		deliver := func() error {
			return Consume(t.Context(), guard, name, func(context.Context) ([]byte, error) {
				if runs++; runs == 1 {
					return nil, c.fails
				}
				return []byte("receipt"), nil
			}, func(context.Context, string) error {
				parked++
				return nil
			})
		}
		if err := deliver(); !errors.Is(err, c.fails) || parked != 0 {
			t.Errorf("%s: the first delivery got %v and was parked %d times, want %v and none", name, err, parked, c.fails)
		}
		wantRuns, wantParked := 2, 0
		if c.parked {
			wantRuns, wantParked = 1, 2
		}
		if err := errors.Join(deliver(), deliver()); err != nil || runs != wantRuns || parked != wantParked {
			t.Errorf("%s: two more got %v, %d runs and %d parked, want no error, %d and %d", name, err, runs, parked, wantRuns, wantParked)
		}
	}
}

// withoutResult is a Find that has asked another guard.
func withoutResult(context.Context, *idempotency.Claim) (idempotency.Outcome, error) {
	return idempotency.Unknown(), idempotency.ErrNoResult
}

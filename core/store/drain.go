package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/misuse"
)

// drainEvery is how often Drain checks.
const drainEvery = 10 * time.Millisecond

// Drain does what is left to do on the store before the process ends. Call it after the
// last request.
//
// First it gives back the permits that limiters charged ahead and did not grant
// (limit.Prepaid), one limiter after the other. It waits for charges that are on their way.
// For each subject with such permits that costs up to two round trips, and more if the clock
// of Redis must be read again. Permits that are charged after Drain has begun may stay taken
// until their Term ends.
//
// Then it waits for the library's background tasks. These tasks take back what Redis may
// have granted without an answer, and repeat releases, conclusions, confirmations,
// settlements and refunds that Redis did not confirm. If there is too much to do, tasks
// are given up; the Stats of what began them count them as Lapsing or
// Dropped. Drain does not wait for leases that are held. A store with nothing left to do
// costs no round trip.
//
// Drain is optional, and safe for concurrent use. Without it, grants in doubt end with
// their lease, a run whose conclusion is lost is in doubt, and what a decision took or a
// limiter charged ahead stays taken.
//
// The error joins those of all calls. Drain returns when nothing is left to do, or when ctx
// ends. If ctx ends first, the error also says how many tasks are left, and wraps that of ctx.
func (s *Store) Drain(ctx context.Context) error {
	misuse.Context(ctx)
	if !s.made() {
		return errStore
	}
	var faults []error
	for _, one := range s.gauges.entries() {
		if err := one.drain(ctx); err != nil {
			faults = append(faults, fmt.Errorf("store.Drain: %w", err))
		}
	}
	return errors.Join(append(faults, s.settle(ctx))...)
}

// settle waits for the background tasks.
func (s *Store) settle(ctx context.Context) error {
	ticker := time.NewTicker(drainEvery)
	defer ticker.Stop()
	for {
		left := s.pending.Load()
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("store.Drain: %d grants or conclusions are left without an answer: %w", left, ctx.Err())
		case <-ticker.C:
		}
	}
}

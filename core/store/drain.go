package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/internal/misuse"
)

// drainEvery is how often Drain checks.
const drainEvery = 10 * time.Millisecond

// Drain waits for the library's background tasks. These tasks take back what Redis may
// have granted without an answer, and repeat releases, conclusions, confirmations,
// settlements and refunds that Redis did not confirm. Call Drain after the last request
// and before the process ends. It is optional: without it, grants in doubt end with their
// lease, a run whose conclusion is lost is in doubt, and what a decision took stays taken.
//
// If there is too much to do, tasks are given up; the Stats of the limiter, locker, guard
// or stock count them as Lapsing or Dropped. Drain does not wait for prepaid permits
// (limit.Limiter.ReturnPrepaid), nor for leases that are held. It sends nothing itself.
//
// If ctx ends first, the error says how many tasks are left, and wraps the error of ctx.
func (s *Store) Drain(ctx context.Context) error {
	misuse.Context(ctx)
	if !s.made() {
		return errStore
	}
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

// Pending returns the counter of background tasks. The library's own packages add to it.
func (s *Store) Pending() *atomic.Int64 {
	if s == nil {
		return nil
	}
	return &s.pending
}

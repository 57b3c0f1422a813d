package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/internal/misuse"
)

// drainEvery is how often Drain looks.
const drainEvery = 10 * time.Millisecond

// Drain waits for the library's tasks in the background. These take back what Redis may have
// granted without an answer, and repeat releases, conclusions and confirmations that
// Redis did not confirm. What a task gives up because too much is left to do, the Stats of
// the locker, guard or stock count as Lapsing or Dropped. Drain does not wait for prepaid
// permits (limit.Limiter.ReturnPrepaid). Call Drain before a process ends,
// after its last request. It is optional: without it, grants in doubt end with their lease,
// and a run whose conclusion is lost is in doubt.
//
// If ctx ends first, the error says how much is left and wraps the error of ctx. Drain sends
// nothing itself, and does not wait for leases that are held.
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

// Pending counts what goes on in the background. The library's own packages add to it.
func (s *Store) Pending() *atomic.Int64 {
	if s == nil {
		return nil
	}
	return &s.pending
}

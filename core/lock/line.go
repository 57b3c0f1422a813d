package lock

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/background"
)

// lock_acquire.lua describes the line in which processes wait for a lock.

// waits is how long a free lock waits for the first in line: long enough for some round
// trips within a continent, and shorter than the usual RetryDelay.
const waits = 100 * time.Millisecond

// stays returns how many milliseconds a place lasts. The question in their second half renews
// it, so a process may be late by a RetryDelay.
func stays(retryDelay time.Duration) int64 {
	return (3*retryDelay + waits).Milliseconds()
}

// leave takes this process out of the line of a key for which it does not wait any more,
// in the background. Until then the lock may wait for it in vain.
func (s *shared) leave(ctx context.Context, key string) {
	s.asker.Inside.Pending().Add(1)
	background.Go(func() {
		defer s.asker.Inside.Pending().Add(-1)
		_, _, _, _ = s.ask(ctx, leaveScript, key, s.process)
		s.queues.notify(key) // a caller that came meanwhile has lost its place, and asks for another
	})
}

package lock

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/store"
)

type counters struct {
	granted, held, canceled, failed, lost atomic.Uint64
}

// finished counts an attempt to get a lock, and returns its outcome.
func (c *counters) finished(err error) store.Outcome {
	count, outcome := &c.failed, store.Failed
	switch {
	case err == nil:
		count, outcome = &c.granted, store.Granted
	case errors.Is(err, ErrHeld), errors.Is(err, errDone):
		count, outcome = &c.held, store.Held
	case ask.IsCanceled(err):
		count, outcome = &c.canceled, store.Canceled
	}
	count.Add(1)
	return outcome
}

// loss counts a lock that ended before its release.
func (s *shared) loss(ctx context.Context) {
	s.count.lost.Add(1)
	s.notifyLost(ctx)
}

func (s *shared) notifyLost(ctx context.Context) {
	s.store.Notify(ctx, store.Event{Primitive: store.Lock, Name: s.name, Outcome: store.Lost, Change: true})
}

// Stats are counts of what a Locker, and the Lockers that As and WithWait made of it, did
// in this process.
type Stats struct {
	Granted  uint64 // locks, and runs of Once
	Held     uint64 // calls that found another holder, for all of their wait, or a tick that had run
	Canceled uint64 // calls whose context ended first
	Failed   uint64 // calls that Redis did not answer in time, or granted when the lease was over, and calls with a tick too long ago
	Lost     uint64 // locks that ended before their release

	Holding int // locks and runs of Once that are held at the moment
	Waiting int // callers that wait in Acquire, AcquireAll, Do, DoAll, Lead and Once, and runs that are about to begin

	Undoing int    // grants that no caller was told of, and that neap is looking for at the moment
	Undone  uint64 // such grants that neap found and gave back
	Lapsing uint64 // such grants that are left to lapse after one try at most, because neap looks for 100,000 others
}

// Stats reports what the Locker does and has done in this process. It sends nothing, is safe for
// concurrent use, and panics on a nil or zero Locker.
func (l *Locker) Stats() Stats {
	misuse.Made(l.made(), errLocker)
	u := l.undo.Stats()
	waiting, holding := l.queues.size()
	return Stats{
		Granted: l.count.granted.Load(), Held: l.count.held.Load(), Canceled: l.count.canceled.Load(),
		Failed: l.count.failed.Load(), Lost: l.count.lost.Load(),
		Holding: holding, Waiting: waiting,
		Undoing: u.Pending, Undone: u.Undone, Lapsing: u.Overflowed,
	}
}

// gauge is what the store reports about the Locker.
func (s *shared) gauge() store.Gauge {
	waiting, holding := s.queues.size()
	return store.Gauge{Primitive: store.Lock, Name: s.name, Active: holding, Waiting: waiting, Background: s.undo.Stats().Pending}
}

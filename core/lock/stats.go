package lock

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/misuse"
)

type counters struct {
	granted, held, canceled, failed, lost atomic.Uint64
}

func (c *counters) told(err error) {
	switch {
	case err == nil:
		c.granted.Add(1)
	case errors.Is(err, ErrHeld), errors.Is(err, errDone):
		c.held.Add(1)
	case ask.IsCallers(err) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		c.canceled.Add(1)
	default:
		c.failed.Add(1)
	}
}

// Stats are what a Locker, and those made of it by As, did in this process.
type Stats struct {
	Granted  uint64 // locks, and runs of Once
	Held     uint64 // times that another had the lock for all of the wait, or had run the tick
	Canceled uint64 // times that the caller's context ended first
	Failed   uint64 // times that Redis did not answer, or too late, or that a tick was too long ago
	Lost     uint64 // locks that ended before their release

	Holding int // locks, and runs of Once, now
	Waiting int // callers of Acquire, Do and Once now, with the runs that are being begun

	Undoing int    // grants that nobody was told of, and that are looked for now
	Undone  uint64 // such grants that were found, and given back
	Lapsing uint64 // such grants that are left to lapse, since 100,000 are looked for: tried once, not found
}

// Stats tells what the Locker does and has done in this process. It asks
// nobody.
func (l *Locker) Stats() Stats {
	misuse.Made(l.made(), errLocker)
	u := l.undo.Stats()
	waiting, holding := l.lines.size()
	return Stats{
		Granted: l.count.granted.Load(), Held: l.count.held.Load(), Canceled: l.count.canceled.Load(),
		Failed: l.count.failed.Load(), Lost: l.count.lost.Load(),
		Holding: holding, Waiting: waiting,
		Undoing: u.Pending, Undone: u.Undone, Lapsing: u.Overflowed,
	}
}

package idempotency

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/store"
)

type counters struct {
	begun, replayed, inFlight, mismatched, inDoubt, noResult, canceled, failed atomic.Uint64
	completed, flushed, abandoned, doubted, overtaken, unconfirmed, lost       atomic.Uint64
	running                                                                    atomic.Int64
}

// finished counts the answer of Begin or Await, and says what it was.
func (n *counters) finished(r Run, err error) store.Outcome {
	count, outcome := &n.failed, store.Failed
	switch {
	case r.Claim != nil:
		count, outcome = &n.begun, store.Granted
	case err == nil:
		count, outcome = &n.replayed, store.Replayed
	case errors.Is(err, ErrInFlight):
		count, outcome = &n.inFlight, store.Held
	case errors.Is(err, ErrMismatch):
		count, outcome = &n.mismatched, store.Mismatched
	case errors.Is(err, ErrInDoubt):
		count, outcome = &n.inDoubt, store.InDoubt
	case errors.Is(err, ErrNoResult), errors.Is(err, ErrUnreadable):
		count, outcome = &n.noResult, store.NoResult
	case ask.IsCanceled(err):
		count, outcome = &n.canceled, store.Canceled
	}
	count.Add(1)
	return outcome
}

// notify tells the observers of the store what became of a claim.
func (g *Guard) notify(ctx context.Context, outcome store.Outcome) {
	g.store.Notify(ctx, store.Event{Primitive: store.Guard, Name: g.name, Outcome: outcome, Change: true})
}

// loss counts a claim that ended before it was concluded, and tells of it.
func (g *Guard) loss(ctx context.Context) {
	g.count.lost.Add(1)
	g.notify(ctx, store.Lost)
}

// Stats are what a Guard did in this process.
type Stats struct {
	Begun      uint64 // claims
	Replayed   uint64 // times that a result was given
	InFlight   uint64 // times that another was at it, for all of the wait
	Mismatched uint64 // times that the key was used for something else
	InDoubt    uint64 // times that it was in doubt
	NoResult   uint64 // times that it was done without a result that could be given
	Canceled   uint64 // times that the caller's context ended first
	Failed     uint64 // times that Redis did not answer, or too late

	Completed   uint64 // claims that were concluded as done
	Flushed     uint64 // completed claims whose record was gone from Redis
	Abandoned   uint64 // claims that were concluded otherwise
	Doubted     uint64 // abandoned claims that are in doubt since
	Overtaken   uint64 // claims that another had taken over when they were concluded: it may have run twice
	Unconfirmed uint64 // conclusions that Redis did not confirm at once
	Lost        uint64 // claims that ended before they were concluded

	Running    int    // claims now
	Concluding int    // conclusions that are being repeated now
	Concluded  uint64 // conclusions that Redis confirmed late
	Dropped    uint64 // conclusions that were repeated once and no more, since 1,000 are being repeated
	Undoing    int    // claims whose caller was not told, and that are looked for now
	Undone     uint64 // such claims that were found, and given back
	Lapsing    uint64 // such claims that are left to lapse, since 100,000 are looked for
}

// Stats tells what the Guard does and has done in this process. It sends nothing.
func (g *Guard) Stats() Stats {
	misuse.Made(g.made(), errGuard)
	n, undo, late := &g.count, g.undo.Stats(), g.late.Stats()
	return Stats{
		Begun: n.begun.Load(), Replayed: n.replayed.Load(), InFlight: n.inFlight.Load(), Mismatched: n.mismatched.Load(),
		InDoubt: n.inDoubt.Load(), NoResult: n.noResult.Load(), Canceled: n.canceled.Load(), Failed: n.failed.Load(),
		Completed: n.completed.Load(), Flushed: n.flushed.Load(), Abandoned: n.abandoned.Load(),
		Doubted: n.doubted.Load(), Overtaken: n.overtaken.Load(), Unconfirmed: n.unconfirmed.Load(), Lost: n.lost.Load(),
		Running:    int(n.running.Load()),
		Concluding: late.Pending, Concluded: late.Undone, Dropped: late.Overflowed,
		Undoing: undo.Pending, Undone: undo.Undone, Lapsing: undo.Overflowed,
	}
}

// gauge is what the store tells of the Guard.
func (s *shared) gauge() store.Gauge {
	return store.Gauge{
		Primitive: store.Guard, Name: s.name,
		Active: int(s.count.running.Load()), Background: s.undo.Stats().Pending + s.late.Stats().Pending,
	}
}

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
	begun, replayed, inFlight, mismatched, inDoubt, noResult, canceled, failed, unguarded atomic.Uint64
	completed, flushed, abandoned, doubted, overtaken, unconfirmed, lost                  atomic.Uint64
	running                                                                               atomic.Int64
}

// finished counts the answer of Begin or Await, and returns its outcome.
func (n *counters) finished(r Answer, err error) store.Outcome {
	count, outcome := &n.failed, store.Failed
	switch {
	case r.Claim != nil:
		count, outcome = &n.begun, store.Granted
	case err == nil:
		count, outcome = &n.replayed, store.Replayed
	case errors.Is(err, ErrInDoubt):
		count, outcome = &n.inDoubt, store.InDoubt
	case errors.Is(err, ErrInFlight):
		count, outcome = &n.inFlight, store.Held
	case errors.Is(err, ErrMismatch):
		count, outcome = &n.mismatched, store.Mismatched
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

// loss counts a claim that ended before it was concluded, and tells the observers.
func (g *Guard) loss(ctx context.Context) {
	g.count.lost.Add(1)
	g.notify(ctx, store.Lost)
}

// Stats are counts of what a Guard, and the Guards that WithWait and WithFail made of it, did in this
// process.
type Stats struct {
	Begun      uint64 // claims that were granted
	Replayed   uint64 // calls that got a result
	InFlight   uint64 // calls that found another caller at work, for all of their wait
	Mismatched uint64 // calls whose key was used with another fingerprint
	InDoubt    uint64 // calls that found the work in doubt
	NoResult   uint64 // calls that found the work done, without a result that could be returned
	Canceled   uint64 // calls whose context ended first
	Failed     uint64 // calls that Redis did not answer in time
	Unguarded  uint64 // those of them that got a claim all the same, with RunUnguarded

	Completed   uint64 // claims that were concluded as done
	Flushed     uint64 // completed claims whose record was gone from Redis
	Abandoned   uint64 // claims that were concluded otherwise
	Doubted     uint64 // abandoned claims whose work was then in doubt
	Overtaken   uint64 // claims that another caller had taken over when they were concluded: the work may have run twice
	Unconfirmed uint64 // conclusions that Redis did not confirm at once
	Lost        uint64 // claims that ended before they were concluded

	Running    int    // claims that are held at the moment, until Redis was first told how the run ended
	Concluding int    // conclusions that neap is repeating at the moment
	Concluded  uint64 // conclusions that Redis confirmed late
	Dropped    uint64 // conclusions that were given up, because Redis refused them for a lease, or because neap was repeating 1,000 others
	Undoing    int    // claims that no caller was told of, and that neap is looking for at the moment
	Undone     uint64 // such claims that neap found and gave back
	Lapsing    uint64 // such claims that are left to lapse after one try at most, because neap looks for 100,000 others
}

// Stats reports what the Guard does and has done in this process. It sends nothing, is safe for
// concurrent use, and panics on a nil or zero Guard.
func (g *Guard) Stats() Stats {
	misuse.Made(g.made(), errGuard)
	n := &g.count
	running := n.running.Load()                  // before the conclusions, which a claim becomes
	late, undo := g.late.Stats(), g.undo.Stats() // a conclusion may begin to look for a claim
	return Stats{
		Begun: n.begun.Load(), Replayed: n.replayed.Load(), InFlight: n.inFlight.Load(), Mismatched: n.mismatched.Load(),
		InDoubt: n.inDoubt.Load(), NoResult: n.noResult.Load(), Canceled: n.canceled.Load(), Failed: n.failed.Load(), Unguarded: n.unguarded.Load(),
		Completed: n.completed.Load(), Flushed: n.flushed.Load(), Abandoned: n.abandoned.Load(),
		Doubted: n.doubted.Load(), Overtaken: n.overtaken.Load(), Unconfirmed: n.unconfirmed.Load(), Lost: n.lost.Load(),
		Running:    int(running),
		Concluding: late.Pending, Concluded: late.Undone, Dropped: late.Overflowed + late.Lapsed,
		Undoing: undo.Pending, Undone: undo.Undone, Lapsing: undo.Overflowed,
	}
}

// gauge is what the store reports about the Guard.
func (s *shared) gauge() store.Gauge {
	return store.Gauge{
		Primitive: store.Guard, Name: s.name,
		Active: int(s.count.running.Load()), Background: s.undo.Stats().Pending + s.late.Stats().Pending,
	}
}

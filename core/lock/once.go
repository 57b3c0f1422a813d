package lock

import (
	"context"
	"errors"
	"time"
)

// Rerun is what to do about a run of [Locker.Once] that was begun and did not
// complete: its process died, or its function failed.
type Rerun uint8

const (
	// Never begins no other run: each tick starts at most once.
	Never Rerun = iota + 1
	// Again begins another run: each tick completes at most once.
	Again
)

func (r Rerun) String() string {
	switch r {
	case Never:
		return "never"
	case Again:
		return "again"
	}
	return "neither Never nor Again"
}

// run is one tick of a job.
type run struct {
	tick  int64 // milliseconds since 1970
	rerun Rerun
}

type conclusion string

const (
	completed conclusion = "completed"
	failed    conclusion = "failed"
)

// errDone: the tick is somebody else's for good.
var errDone = errors.New("lock: the tick has run")

// Once runs fn for one tick of a job in one process of all that call it, and
// says whether that was this one. The tick is the instant that the run is
// scheduled for, in whole milliseconds, and not that of the call: by it the
// processes know that they mean the same.
//
// With Never, fn is started at most once, whatever happens to the process that
// starts it; the others return at once. With Again, it completes at most once:
// the others wait until it has, for as long as ctx allows, and take over when
// the process that runs it has been gone for a TTL, or its fn failed or
// panicked. A run that was taken over may still be at work when the next one
// begins, although its context has ended: what it writes should carry the
// fence of [FromContext].
//
// The error is nil when fn completed here and Redis has noted it, and when it
// ran elsewhere. It is that of fn when fn failed; with fn begun it is also what
// [Lock.Release] returns: [ErrTakenByOther] when another run was begun since,
// and a [*script.Error] when nobody knows whether the completion was noted.
// With fn not begun it is ctx.Err(), [ErrKey] for an empty job, [ErrTick],
// [ErrLate] for a tick that is longer ago than FenceRetention, or a
// [*script.Error]. Never and Again of one job must not be mixed. It costs one
// round trip to begin and one to end.
func (l *Locker) Once(
	ctx context.Context, job string, tick time.Time, rerun Rerun, fn func(ctx context.Context) error,
) (ran bool, err error) {
	b, err := l.bid(job)
	if err != nil {
		return false, err
	}
	if tick.IsZero() || rerun != Never && rerun != Again {
		return false, ErrTick
	}
	b.run = &run{tick: tick.UnixMilli(), rerun: rerun}
	b.key = l.space.Key(job, number(b.run.tick))
	b.owner, b.line = b.hold, ""

	var held *Lock
	if rerun == Never {
		held, _, err = l.attempt(ctx, b, "")
	} else {
		held, err = l.wait(ctx, b, 0)
	}
	held, err = l.told(b, held, err)
	if errors.Is(err, errDone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}

	how := failed
	defer func() {
		if verdict := held.finish(ctx, how); how == completed || isLoss(verdict) {
			err = errors.Join(err, verdict)
		}
	}()
	if err = fn(held.Context()); err == nil {
		how = completed
	}
	return true, err
}

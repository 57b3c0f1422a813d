package lock

import (
	"context"
	"errors"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
)

// Rerun says what [Locker.Once] does about a run that began and did not complete because
// its process died or its function failed. The zero Rerun is not usable.
type Rerun uint8

const (
	// Never starts no other run: each tick starts at most once.
	Never Rerun = iota + 1
	// Again starts another run: each tick completes at most once.
	Again
)

// String returns "never" or "again".
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
	begun bool // fn has begun, or is about to begin
}

type conclusion string

const (
	completed conclusion = "completed"
	failed    conclusion = "failed"
	undone    conclusion = "undone"
)

// without is how a run ends that has not completed.
func (r *run) without() conclusion {
	if r.rerun == Never && !r.begun {
		return undone
	}
	return failed
}

// errDone says that another process has run the tick.
var errDone = errors.New("lock: the tick has run")

// Once runs fn for one tick of a job, in one of the processes that call it. It reports
// whether it was this process. The tick is the instant that the run is scheduled for, in
// whole milliseconds, and not the time of the call. All processes must pass the same
// instant. Do not mix Never and Again for one job.
//
//	tick := time.Now().Truncate(time.Hour).Add(time.Hour) // before the sleep: the same in every process
//	time.Sleep(time.Until(tick))
//	ran, err := locker.Once(ctx, "report", tick, lock.Again, report)
//
// With Never, fn starts at most once, whatever happens to the process that starts it. The
// other processes return immediately.
//
// With Again, fn completes at most once. The other processes wait for it as long as ctx
// allows, also while Redis is down. One of them takes over if the process that runs fn
// has been gone for a lease, or if fn failed or panicked. When the next run begins, the
// one that was taken over may still be at work, although its context has ended. What fn
// writes should carry the fence of [FromContext].
//
// Once returns nil if fn completed here and Redis has noted it, also after the end of the
// lease. It also returns nil if fn ran elsewhere. Otherwise, if fn has begun, it returns
//
//   - what fn returned, joined with the loss if the lock was lost;
//   - [ErrTakenByOther] if another run has begun since, [ErrLost] if Redis has no record
//     of this run, or [ErrReleased] if fn released its own lock. In each case fn did not
//     complete;
//   - a [*script.Error] if Redis could not confirm that fn completed. neap repeats that
//     in the background until Redis answers, and it counts unless another run has taken
//     over.
//
// If fn panics, Once releases the lock, and the panic propagates.
//
// If fn has not begun, you may call Once again. Once then returns
//
//   - ctx.Err(), joined with the last error of Redis if Redis was down;
//   - [ErrKey] for an empty job, [ErrOwner] for an empty owner, and [ErrTick];
//   - [ErrLate] for a tick that is longer ago than FenceRetention;
//   - [ErrHeld] if fn calls Once for its own tick;
//   - a [*script.Error];
//   - with Never, [ErrExpired] if the lease was over when the answer came.
//
// Redis may grant a start although its answer is lost. neap takes such a start back in
// the background. Until then, the other callers with Never are told that the tick ran. So
// it is possible that no process runs it.
//
// Once costs one round trip to begin, one to end, and one for each third of the lease
// that fn takes. With Again, a process that waits also asks once in each RetryDelay. The
// record of a tick has the key <prefix>:lock:<name>:{<job>}:<milliseconds since 1970>; an
// unusual job stands there as its hash. It lives for twice FenceRetention, counted from
// the tick or the run, whichever is later.
func (l *Locker) Once(
	ctx context.Context, job string, tick time.Time, rerun Rerun, fn func(ctx context.Context) error,
) (ran bool, err error) {
	b, err := l.bid(ctx, job)
	if err != nil {
		return false, err
	}
	if tick.IsZero() || rerun != Never && rerun != Again {
		return false, ErrTick
	}
	b.run = &run{tick: tick.UnixMilli(), rerun: rerun}
	b.key = l.space.Key(job, number(b.run.tick))
	b.queue = ""
	if b.within(ctx) {
		return false, ErrHeld
	}
	if fn == nil {
		return false, errFn
	}
	held, err := l.start(ctx, b)
	held, err = l.finish(ctx, b, held, err)
	if errors.Is(err, errDone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}

	b.run.begun = true
	returned := false
	defer func() {
		if returned && err == nil {
			err = held.complete(ctx)
		} else if lost := held.Release(ctx); isLoss(lost) {
			err = errors.Join(err, lost)
		}
	}()
	err = fn(held.Context())
	returned = true
	return true, err
}

// start begins a run.
func (l *Locker) start(ctx context.Context, b *bid) (*Lock, error) {
	if b.run.rerun == Never {
		held, _, err := l.attempt(ctx, b, "")
		return held, err
	}
	held, away, err := l.persist(ctx, b)
	if err != nil && away != nil && ask.IsCallers(err) {
		err = errors.Join(err, away)
	}
	return held, err
}

// complete ends a run as Release ends a lock. If the lock is released already, fn has
// released it.
func (l *Lock) complete(ctx context.Context) error {
	verdict := ErrReleased
	l.release.Do(func() {
		l.outcome = errEnded
		verdict = l.completed(endless(ctx))
		l.outcome = verdict
	})
	return verdict
}

func (l *Lock) completed(ctx context.Context) error {
	n, doubted, lost, err := l.conclude(ctx, completed)
	if err != nil {
		return err
	}
	verdict := verdict(n, doubted)
	if verdict != nil && lost == nil {
		l.of.loss(ctx)
	}
	return verdict
}

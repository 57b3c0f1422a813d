package neighbours

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/neap-go/neap/core/lock"
)

var errFollows = errors.New("another process leads")

// CronElector has the jobs of gocron run in the process that leads.
type CronElector struct {
	held atomic.Pointer[lock.Lock]
}

// Stand leads, or waits to lead, until ctx ends. End ctx after Shutdown of the scheduler, which waits
// for the jobs: the next process leads then.
func (e *CronElector) Stand(ctx context.Context, roles *lock.Locker) error {
	return roles.Lead(ctx, "cron", func(ctx context.Context) error {
		held, _ := lock.FromContext(ctx)
		e.held.Store(held)
		<-ctx.Done()
		return ctx.Err()
	})
}

// IsLeader is gocron's question before each run.
func (e *CronElector) IsLeader(context.Context) error {
	if held := e.held.Load(); held != nil {
		return held.Err()
	}
	return errFollows
}

// CronLocker has each run of a job of gocron be in one process, by the job's name.
type CronLocker struct {
	Locks *lock.Locker
	// Least is how long a run excludes others, even if it takes no time: longer than two
	// clocks can differ, and shorter than the time between two runs.
	Least time.Duration
}

// Lock fails if the job runs elsewhere, or has just run.
func (l CronLocker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	held, err := l.Locks.Try(ctx, job)
	if err != nil {
		return nil, err
	}
	return cronLock{held, time.Now().Add(l.Least)}, nil
}

type cronLock struct {
	held  *lock.Lock
	least time.Time
}

// Unlock releases the lock, or has it released later.
func (l cronLock) Unlock(ctx context.Context) error {
	if left := time.Until(l.least); left > 0 {
		time.AfterFunc(left, func() { _ = l.held.Release(ctx) })
		return l.held.Err()
	}
	return l.held.Release(ctx)
}

// CronTask has a job that is scheduled for whole minutes run once at each, in one of the
// processes. Their clocks and their schedulers together may be half a minute late.
func CronTask(jobs *lock.Locker, name string, fn func(ctx context.Context) error) gocron.Task {
	return gocron.NewTask(func(ctx context.Context) error {
		tick := time.Now().Round(time.Minute) // the same for 11:59:58 and 12:00:02
		_, err := jobs.Once(ctx, name, tick, lock.Never, fn)
		return err
	})
}

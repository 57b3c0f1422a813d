package guide

import (
	"errors"
	"testing"
	"time"
)

// runs counts how often a job has run to its end.
type runs int

func (n *runs) job() error {
	*n++
	return nil
}

var errDatabase = errors.New("the database is away")

func TestTheLockIsFreeAgain(t *testing.T) {
	t.Parallel()
	pitfall[runs]{
		asks: "runs of the job if the second process comes after the first has finished",
		usual: func(s scene) (n runs) {
			for range 2 {
				s.must(RunByLock(s.Context(), s.rdb, s.key, n.job))
			}
			return n
		},
		breaks: 2,
		neap: func(s scene) (n runs) {
			tick := time.Now().Truncate(time.Minute)
			for range 2 {
				s.must(RunOnce(s.Context(), s.locker(s.rdb), tick, n.job))
			}
			return n
		},
		holds: 1,
	}.run(t)
}

func TestMarkedAndNotDone(t *testing.T) {
	t.Parallel()
	pitfall[runs]{
		asks: "completed runs of the job if the first process to begin has failed",
		usual: func(s scene) (n runs) {
			now := time.Now()
			err := RunByMark(s.Context(), s.rdb, s.key, now, func() error { return errDatabase })
			s.must(unless(err, errDatabase))
			s.must(RunByMark(s.Context(), s.rdb, s.key, now, n.job))
			return n
		},
		breaks: 0,
		neap: func(s scene) (n runs) {
			tick := time.Now().Truncate(time.Minute)
			err := RunOnce(s.Context(), s.locker(s.rdb), tick, func() error { return errDatabase })
			s.must(unless(err, errDatabase))
			s.must(RunOnce(s.Context(), s.locker(s.rdb), tick, n.job))
			return n
		},
		holds: 1,
	}.run(t)
}

func TestWhichTick(t *testing.T) {
	t.Parallel()
	noon := time.Now().Truncate(time.Minute)
	woke := []time.Time{noon.Add(-20 * time.Millisecond), noon.Add(300 * time.Millisecond)} // each by the clock of its machine
	pitfall[runs]{
		asks: "runs of one tick's job if one of two processes woke before the tick by its own clock",
		usual: func(s scene) (n runs) {
			for _, now := range woke {
				s.must(RunByMark(s.Context(), s.rdb, s.key, now, n.job))
			}
			return n
		},
		breaks: 2,
		neap: func(s scene) (n runs) {
			for range woke {
				s.must(RunOnce(s.Context(), s.locker(s.rdb), noon, n.job))
			}
			return n
		},
		holds: 1,
	}.run(t)
}

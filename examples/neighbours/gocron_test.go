package neighbours

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
)

// cronBubble runs a test of two processes, which have a Redis and a clock of their own.
func cronBubble(t *testing.T, test func(t *testing.T, locks [2]*lock.Locker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := redistest.Bubble(t)
		var locks [2]*lock.Locker
		for i := range locks {
			l, err := lock.New(redistest.BubbleClient(t, m), "cron", &lock.Options{Budget: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			locks[i] = l
		}
		defer time.Sleep(time.Minute) // what is released in the background is
		test(t, locks)
	})
}

// runs notes which process has run the job.
type runs struct {
	mu sync.Mutex
	by []int
}

func (r *runs) add(by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by = append(r.by, by)
}

func (r *runs) take() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.by = nil }()
	return r.by
}

// schedule has a process run a task each minute, by a clock that is late.
func schedule(t *testing.T, task gocron.Task, late time.Duration, opts ...gocron.SchedulerOption) (shutDown func()) {
	t.Helper()
	s, err := gocron.NewScheduler(opts...)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().Truncate(time.Minute).Add(time.Minute + late)
	_, err = s.NewJob(gocron.DurationJob(time.Minute), task,
		gocron.WithName("report"), gocron.WithStartAt(gocron.WithStartDateTime(at)))
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	return func() {
		if err := s.Shutdown(); err != nil {
			t.Errorf("Shutdown: got %v, want no error", err)
		}
	}
}

// late is by how much the clock of the second process is.
const late = 2 * time.Second

func TestCronElector(t *testing.T) {
	t.Parallel()
	cronBubble(t, func(t *testing.T, locks [2]*lock.Locker) {
		var ran runs
		var electors [2]CronElector
		var leave, shutDown [2]func()
		var left [2]chan error
		for i := range electors {
			if err := electors[i].IsLeader(t.Context()); !errors.Is(err, errFollows) {
				t.Errorf("IsLeader before it stands: got %v, want %v", err, errFollows)
			}
			ctx, cancel := context.WithCancel(t.Context())
			leave[i], left[i] = cancel, make(chan error, 1)
			go func() { left[i] <- electors[i].Stand(ctx, locks[i]) }()
			time.Sleep(time.Second)
			shutDown[i] = schedule(t, gocron.NewTask(func() { ran.add(i) }), time.Duration(i)*late, gocron.WithDistributedElector(&electors[i]))
		}
		time.Sleep(3 * time.Minute)
		if got := ran.take(); !slices.Equal(got, []int{0, 0, 0}) {
			t.Errorf("three minutes: got runs by %v, want 3 by process 0", got)
		}
		shutDown[0]()
		leave[0]()
		if err := <-left[0]; !errors.Is(err, context.Canceled) {
			t.Errorf("Stand: got %v, want Canceled", err)
		}
		if err := electors[0].IsLeader(t.Context()); !errors.Is(err, lock.ErrReleased) {
			t.Errorf("IsLeader after it left: got %v, want ErrReleased", err)
		}
		time.Sleep(time.Second)
		if err := electors[1].IsLeader(t.Context()); err != nil {
			t.Errorf("IsLeader of the other a second later: got %v, want no error", err)
		}
		time.Sleep(2 * time.Minute)
		if got := ran.take(); !slices.Equal(got, []int{1, 1}) {
			t.Errorf("two minutes later: got runs by %v, want 2 by process 1", got)
		}
		shutDown[1]()
		leave[1]()
		<-left[1]
	})
}

// TestCronClocks has the second process come two seconds late, when a job of no length is over
// in the first. The wrong way runs it twice.
func TestCronClocks(t *testing.T) {
	t.Parallel()
	type way func(l *lock.Locker, fn func(context.Context) error) (gocron.Task, []gocron.SchedulerOption)
	locked := func(least time.Duration) way {
		return func(l *lock.Locker, fn func(context.Context) error) (gocron.Task, []gocron.SchedulerOption) {
			return gocron.NewTask(fn), []gocron.SchedulerOption{gocron.WithDistributedLocker(CronLocker{l, least})}
		}
	}
	for name, c := range map[string]struct {
		way   way
		takes time.Duration
		want  int // runs in two minutes
	}{
		"a lock alone":                {locked(0), 0, 4},
		"a lock of 10 s":              {locked(10 * time.Second), 0, 2},
		"a lock of 10 s, a job of 20": {locked(10 * time.Second), 20 * time.Second, 2},
		"once a tick": {func(l *lock.Locker, fn func(context.Context) error) (gocron.Task, []gocron.SchedulerOption) {
			return CronTask(l, "report", fn), nil
		}, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cronBubble(t, func(t *testing.T, locks [2]*lock.Locker) {
				var ran runs
				for i, l := range locks {
					task, opts := c.way(l, func(context.Context) error {
						ran.add(i)
						time.Sleep(c.takes)
						return nil
					})
					defer schedule(t, task, time.Duration(i)*late, opts...)()
				}
				time.Sleep(2*time.Minute + 30*time.Second)
				if got := ran.take(); len(got) != c.want {
					t.Errorf("got runs by %v, want %d", got, c.want)
				}
			})
		})
	}
}

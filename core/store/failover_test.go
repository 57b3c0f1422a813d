package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// followed is the time within which a failover is followed on a busy machine. go-redis
// itself reads the slots a minute after it has last read them.
const followed = 20 * time.Second

// TestAFailoverIsFollowed kills or stops a master while every primitive asks it. After its
// replica has taken over, the replica answers each primitive: in a cluster long before
// go-redis would read the slots by itself. Whatever was held is still held.
func TestAFailoverIsFollowed(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(testing.TB, *redistest.Server){
		"killed":  func(tb testing.TB, s *redistest.Server) { tb.Helper(); s.Stop(tb) },
		"stopped": func(tb testing.TB, s *redistest.Server) { tb.Helper(); s.Pause(tb) },
	} {
		for kind, place := range map[string]func(t *testing.T) failing{"cluster": failingCluster, "sentinel": failingSentinel} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := place(t)
				f := newFailover(t, storetest.At(t, p.rdb, redistest.Prefix(t)), p.has)
				var subject string
				redistest.Await(t, 30*time.Second, "a lock", func() bool {
					subject = <-f.subjects
					_, err := f.lock.Try(t.Context(), subject)
					return err == nil
				})
				redistest.Await(t, 30*time.Second, "the lock to be replicated", func() bool {
					n, err := p.replica.Admin(t).DBSize(t.Context()).Result()
					own, err2 := p.master.Admin(t).DBSize(t.Context()).Result()
					return err == nil && err2 == nil && n == own
				})
				end(t, p.master)
				took := f.until(t, p.replica)
				t.Logf("each was answered %v after the replica had taken over", took)
				if took > followed {
					t.Errorf("after the replica had taken over: got answers after %v, want at most %v", took, followed)
				}
				var err error
				redistest.Await(t, 30*time.Second, "an answer about the lock", func() bool {
					_, err = f.lock.Try(t.Context(), subject)
					_, failed := errors.AsType[*script.Error](err)
					return !failed
				})
				if !errors.Is(err, lock.ErrHeld) {
					t.Errorf("a lock that was held before the failover: got %v, want ErrHeld", err)
				}
				if name == "stopped" {
					p.master.Resume(t)
				}
			})
		}
	}
}

// failing is a master that is about to fail, and a client of the library's.
type failing struct {
	rdb             script.Client
	master, replica *redistest.Server
	has             func(subject string) bool // that the master has the subject's keys
}

func failingCluster(t *testing.T) failing {
	t.Helper()
	c := redistest.NewReplicatedCluster(t)
	master := c.Nodes()[1]
	return failing{c.Client(t), master, c.ReplicaOf(master), func(subject string) bool { return c.NodeOf(t, "{"+subject+"}") == master }}
}

func failingSentinel(t *testing.T) failing {
	t.Helper()
	s := redistest.NewSentinel(t)
	return failing{s.Client(t), s.Master, s.Replica, func(string) bool { return true }}
}

// failover has one of each primitive.
type failover struct {
	limit    *limit.Limiter
	slots    *inflight.Limiter
	lock     *lock.Locker
	guard    *idempotency.Guard
	stock    *stock.Stock
	subjects chan string // whose keys the master has
}

func newFailover(t *testing.T, st *store.Store, has func(subject string) bool) *failover {
	t.Helper()
	f := &failover{subjects: make(chan string, 300)}
	var errs [5]error
	f.limit, errs[0] = limit.New(st, "n", []limit.Policy{limit.FixedWindow{Limit: 5, Window: time.Hour}}, &limit.Options{Fail: store.FailClosed})
	f.slots, errs[1] = inflight.New(st, "n", 10, &inflight.Options{Fail: store.FailClosed})
	f.lock, errs[2] = lock.New(st, "n", &lock.Options{Lease: 10 * time.Minute})
	f.guard, errs[3] = idempotency.New(st, "n", idempotency.Retry{}, nil)
	f.stock, errs[4] = stock.New(st, "n", nil)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	redistest.Await(t, 30*time.Second, "the servers, which have just begun", func() bool { return f.limit.Warm(t.Context()) == nil })
	for i := range cap(f.subjects) {
		if subject := fmt.Sprint("s", i); has(subject) {
			f.subjects <- subject
		}
	}
	return f
}

// asks are calls that only the master of the subjects can answer.
func (f *failover) asks() map[string]func(ctx context.Context, subject string) error {
	return map[string]func(context.Context, string) error{
		"a limit": func(ctx context.Context, subject string) error { _, err := f.limit.Take(ctx, subject); return err },
		"a slot": func(ctx context.Context, subject string) error {
			s, err := f.slots.Try(ctx, subject)
			_ = s.Release(ctx)
			return err
		},
		"a lock": func(ctx context.Context, subject string) error { _, err := f.lock.Try(ctx, subject); return err },
		"a claim": func(ctx context.Context, subject string) error {
			_, err := f.guard.Begin(ctx, subject, "")
			return err
		},
		"an item": func(ctx context.Context, subject string) error {
			_, err := f.stock.Open(ctx, subject, 1, time.Now().Add(time.Hour))
			return err
		},
	}
}

// until asks until the replica has answered every primitive. It returns how long after
// the replica's takeover that was.
func (f *failover) until(t *testing.T, replica *redistest.Server) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), followed+time.Minute)
	defer cancel()
	taken := make(chan struct{})
	var all sync.WaitGroup
	for name, ask := range f.asks() {
		all.Go(func() {
			for {
				subject := <-f.subjects
				err := ask(ctx, subject)
				f.subjects <- subject
				_, unanswered := errors.AsType[*script.Error](err) // others are answers, such as ErrHeld
				select {
				case <-taken:
					if !unanswered {
						return
					}
				default:
				}
				select {
				case <-ctx.Done():
					t.Errorf("%s: got %v to the end, want an answer", name, err)
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		})
	}
	began := redistest.AwaitTakeover(t, replica)
	close(taken)
	all.Wait()
	return time.Since(began)
}

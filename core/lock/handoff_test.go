package lock_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// queue starts one caller for each context, waits until they queue for "key" in that
// order, and returns what becomes of each.
func queue(t *testing.T, l *lock.Locker, ctxs ...context.Context) (got []chan *lock.Lock, failed []chan error) {
	t.Helper()
	for i, ctx := range ctxs {
		one, fault := make(chan *lock.Lock, 1), make(chan error, 1)
		got, failed = append(got, one), append(failed, fault)
		go func() {
			held, err := l.Acquire(ctx, "key")
			if err != nil {
				fault <- err
				return
			}
			one <- held
		}()
		inLine(t, l, i+1)
	}
	return got, failed
}

func has(t *testing.T, one chan *lock.Lock) *lock.Lock {
	t.Helper()
	select {
	case held := <-one:
		return held
	case <-time.After(soon):
		t.Fatalf("the first in line: got no lock within %v, want it", soon)
	}
	return nil
}

// halting is a client whose first release waits after its reply has arrived. The caller
// may then be told that the connection broke.
type halting struct {
	redis.UniversalClient
	broken bool
	here   chan struct{}
	on     chan struct{}
	once   sync.Once
}

func (c *halting) Process(ctx context.Context, cmd redis.Cmder) error {
	first := false
	if strings.Contains(cmd.String(), releaseScript.SHA()) {
		c.once.Do(func() { first = true })
	}
	err := c.UniversalClient.Process(ctx, cmd)
	if first {
		close(c.here)
		<-c.on
	}
	if first && c.broken {
		cmd.SetErr(io.EOF)
		return io.EOF
	}
	return err
}

func halt(rdb redis.UniversalClient, broken bool) *halting {
	return &halting{
		UniversalClient: rdb, broken: broken, here: make(chan struct{}), on: make(chan struct{}),
	}
}

// A release hands the lock to the first in the queue, in one call and with a larger
// fence.
func TestHandoffTakesOneCall(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	prefix := srv.Prefix(t)
	l := locker(t, srv.Client(t), prefix, unasking())
	other := locker(t, srv.Client(t), prefix, nil)
	held := try(t, l)
	for range 2 {
		got, _ := queue(t, l, t.Context())
		redistest.ResetStats(t, srv.Admin(t))
		release(t, held)
		next := has(t, got[0])
		if n := redistest.CommandStats(t, srv.Admin(t))["evalsha"].Calls; n != 1 {
			t.Errorf("the release that hands the lock on: got %d calls, want 1", n)
		}
		if next.Fence() <= held.Fence() || next.Err() != nil || !errors.Is(held.Err(), lock.ErrReleased) {
			t.Errorf("got the fence %d after %d, Err %v and of the former %v, want a larger one, nil and ErrReleased",
				next.Fence(), held.Fence(), next.Err(), held.Err())
		}
		if state, err := l.Inspect(t.Context(), "key"); err != nil || state.Holds != 1 || state.Fence != next.Fence() || l.Stats().Holding != 1 {
			t.Errorf("after the hand-off: got %+v, %v and stats %+v, want 1 hold with the fence %d",
				state, err, l.Stats(), next.Fence())
		}
		if _, err := other.Try(t.Context(), "key"); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("Try by another locker: got %v, want ErrHeld", err)
		}
		release(t, next)
		held = try(t, l)
	}
	release(t, held)
	if stats := l.Stats(); stats.Holding != 0 || stats.Granted != 5 {
		t.Errorf("got stats %+v, want 0 holding and 5 granted", stats)
	}
	freeSoon(t, other, "key")
}

// TestHandoffsEndAfterATime: then a process that may not subscribe, and asks now and then,
// finds the lock free.
func TestHandoffsEndAfterATime(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	client := &passing{UniversalClient: srv.Client(t)}
	l := locker(t, client, srv.Prefix(t), unasking())
	held := try(t, l)
	got, _ := queue(t, l, t.Context(), t.Context())
	release(t, held)
	next := has(t, got[0])
	began := time.Now()
	redistest.Await(t, soon, "more time than a process hands a lock on", func() bool { return time.Since(began) > 10*lock.HandsOn })
	release(t, next)
	release(t, has(t, got[1]))
	if n := client.passes.Load(); n != 1 {
		t.Errorf("got %d releases that named a successor, want only the first", n)
	}
}

// If the reply to a release with a handoff is lost, a second call tells what became of
// both holds.
func TestHandoffWithALostReply(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		client := halt(rdb, true)
		l, other := locker(t, client, prefix, unasking()), locker(t, rdb, prefix, nil)
		if err := l.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		held := try(t, l)
		got, _ := queue(t, l, t.Context())
		close(client.on)
		release(t, held)
		next := has(t, got[0])
		if next.Fence() <= held.Fence() {
			t.Errorf("got the fence %d after %d, want a larger one", next.Fence(), held.Fence())
		}
		if _, err := other.Try(t.Context(), "key"); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("Try by another locker: got %v, want ErrHeld", err)
		}
		release(t, next)
		freeSoon(t, other, "key")
		if stats := l.Stats(); stats.Undoing != 0 {
			t.Errorf("got stats %+v, want 0 undoing", stats)
		}
	})
}

// If Redis does not confirm a handoff, both holds are taken back: a lock that no caller
// was told of is soon free.
func TestUnconfirmedHandoffIsUndone(t *testing.T) {
	t.Parallel()
	srv, _, proxy, prefix := behind(t)
	l := locker(t, srv.Client(t, func(o *redis.Options) { o.Dialer = proxy.Dial }), prefix, calm(lock.Options{RetryDelay: 50 * time.Millisecond}))
	other := locker(t, srv.Client(t), prefix, nil)
	if err := l.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost := false
	for n := 0; n < 10 && !lost; n++ {
		held := try(t, l)
		got, failed := queue(t, l, t.Context())
		proxy.Lose(redistest.Silence, 1, "evalsha") // of the release, unless the waiter asks at this moment
		err := held.Release(t.Context())
		if lost = errors.Is(err, script.ErrMaybeExecuted); !lost && err != nil {
			t.Errorf("a release without an answer: got %v, want ErrMaybeExecuted", err)
		}
		select {
		case next := <-got[0]:
			_ = next.Release(t.Context())
		case err := <-failed[0]:
			if !errors.Is(err, script.ErrMaybeExecuted) && !errors.Is(err, script.ErrNotExecuted) {
				t.Errorf("a waiter that gets no lock: got %v, want ErrMaybeExecuted or ErrNotExecuted", err)
			}
		case <-time.After(soon):
			t.Errorf("the first in line: got no answer within %v, want the lock or an error", soon)
		}
		freeSoon(t, other, "key")
	}
	if !lost {
		t.Error("ten releases: got each answered, want one whose answer was lost")
	}
}

// If a waiter leaves while it is handed the lock, the next waiter gets the lock, or it is
// free.
func TestHandoffToAWaiterThatLeaves(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]bool{"and another waits": true, "and no other waits": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
				client := halt(rdb, false)
				l, other := locker(t, client, prefix, unasking()), locker(t, rdb, prefix, nil)
				held := try(t, l)
				ctx, cancel := context.WithCancel(t.Context())
				ctxs := []context.Context{ctx}
				if next {
					ctxs = append(ctxs, t.Context())
				}
				got, failed := queue(t, l, ctxs...)
				done := make(chan error, 1)
				go func() { done <- held.Release(t.Context()) }()
				<-client.here
				cancel()
				if err := <-failed[0]; !errors.Is(err, context.Canceled) {
					t.Errorf("the waiter that went: got %v, want context.Canceled", err)
				}
				close(client.on)
				if err := <-done; err != nil {
					t.Errorf("the release: got %v, want no error", err)
				}
				if next {
					release(t, has(t, got[1]))
				}
				freeSoon(t, other, "key")
				redistest.Await(t, soon, "nothing to be held or waited for", func() bool {
					stats := l.Stats()
					return stats.Holding == 0 && stats.Waiting == 0
				})
			})
		})
	}
}

// A caller that joins after the lock was granted to the queue does not get that grant. It
// gets one that is asked for after it joined.
func TestNoHandoffToACallerThatJoinsLater(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		client := halt(rdb, false)
		l, other := locker(t, client, prefix, unasking()), locker(t, rdb, prefix, nil)
		if err := l.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		held := try(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		_, failed := queue(t, l, ctx)
		done := make(chan error, 1)
		go func() { done <- held.Release(t.Context()) }()
		<-client.here
		cancel()
		<-failed[0]
		state, err := other.Inspect(t.Context(), "key")
		if err != nil || !state.Held || state.Fence <= held.Fence() {
			t.Errorf("Inspect during the hand-off: got %+v, %v, want it held with a fence above %d",
				state, err, held.Fence())
		}
		got, _ := queue(t, l, t.Context())
		close(client.on)
		if err := <-done; err != nil {
			t.Errorf("the release: got %v, want no error", err)
		}
		next := has(t, got[0])
		if next.Fence() <= state.Fence {
			t.Errorf("the later caller: got the fence %d, want more than %d: that was granted before it asked",
				next.Fence(), state.Fence)
		}
		release(t, next)
	})
}

// A waiter takes a lock that it is handed just when its wait is over.
func TestHandoffAtTheEndOfTheWait(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		client := &stuckTwice{UniversalClient: rdb, here: make(chan struct{}), on: make(chan struct{})}
		l := locker(t, client, prefix, &lock.Options{Wait: 100 * time.Millisecond, RetryDelay: time.Hour})
		held := try(t, l)
		got, _ := queue(t, l, t.Context())
		<-client.here // it asks for the last time, and is denied because the lock is handed to it
		release(t, held)
		close(client.on)
		release(t, has(t, got[0]))
	})
}

// A waiter may be handed a lock while its own call has no answer yet, and then leave. It gets
// the lock or context.Canceled. Then the next waiter gets the lock, or it is free.
func TestHandoffToAWaiterWithACallInDoubt(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]bool{"and another waits": true, "and no other waits": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
				client := &stuckTwice{UniversalClient: rdb, here: make(chan struct{}), on: make(chan struct{})}
				l := locker(t, client, prefix, &lock.Options{Wait: time.Minute, RetryDelay: 5 * time.Millisecond})
				held := try(t, l)
				ctx, cancel := context.WithCancel(t.Context())
				ctxs := []context.Context{ctx}
				if next {
					ctxs = append(ctxs, t.Context())
				}
				got, failed := queue(t, l, ctxs...)
				<-client.here
				release(t, held)
				cancel()
				close(client.on)
				select {
				case err := <-failed[0]:
					if !errors.Is(err, context.Canceled) {
						t.Errorf("the waiter that went: got %v, want context.Canceled", err)
					}
				case held := <-got[0]: // it got the lock before it went
					release(t, held)
				}
				if next {
					release(t, has(t, got[1]))
				}
				freeSoon(t, locker(t, rdb, prefix, nil), "key")
				redistest.Await(t, soon, "the lock not to be held", func() bool { return l.Stats().Holding == 0 })
			})
		})
	}
}

// A lock that is handed to a waiter whose goroutine a hook ends is given back.
func TestHandoffToAWaiterThatIsEnded(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	rdb := srv.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	here, on := make(chan struct{}), make(chan struct{})
	var asked atomic.Int64
	rdb.AddHook(redistest.BeforeHook(func(cmd redis.Cmder) {
		if strings.Contains(cmd.String(), acquireScript.SHA()) && asked.Add(1) == 2 {
			close(here)
			<-on
			runtime.Goexit()
		}
	}))
	st := storetest.Open(t, rdb, store.Options{Prefix: srv.Prefix(t), Queue: store.Direct})
	l, err := lock.New(st, "test", &lock.Options{Wait: time.Minute, RetryDelay: 5 * time.Millisecond, Budget: time.Minute})
	if err := errors.Join(err, l.Warm(t.Context())); err != nil {
		t.Fatal(err)
	}
	asked.Store(0)
	held := try(t, l)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err := l.Acquire(t.Context(), "key")
		t.Errorf("the waiter: got %v, want its goroutine ended", err)
	}()
	<-here
	release(t, held)
	close(on)
	<-ended
	redistest.Await(t, soon, "the lock not to be held", func() bool { return l.Stats().Holding == 0 })
	release(t, try(t, l))
}

// A hold that a call in doubt may grant again is only ended. If it were handed off, a late
// release could grant the lock to a successor that no caller knows.
func TestNoHandoffOfAHoldInDoubt(t *testing.T) {
	t.Parallel()
	srv, rdb, proxy, prefix := behind(t)
	client := &passing{UniversalClient: rdb}
	l := locker(t, client, prefix, unasking())
	if err := l.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	proxy.Lose(redistest.EOF, 1, "evalsha")
	held := try(t, l)
	got, _ := queue(t, l, t.Context(), t.Context())
	release(t, held)
	next := has(t, got[0])
	if n := client.passes.Load(); n != 0 || proxy.Lost() != 1 {
		t.Errorf("got %d releases that named a successor and %d replies lost, want 0 and 1", n, proxy.Lost())
	}
	release(t, next)
	release(t, has(t, got[1]))
	if n := client.passes.Load(); n != 1 {
		t.Errorf("got %d releases that named a successor, want 1, of what was granted without doubt", n)
	}
	freeSoon(t, locker(t, srv.Client(t), prefix, nil), "key")
}

// passing counts the releases that name a successor.
type passing struct {
	redis.UniversalClient
	passes atomic.Int64
}

func (c *passing) Process(ctx context.Context, cmd redis.Cmder) error {
	if strings.Contains(cmd.String(), releaseScript.SHA()) && len(cmd.Args()) > 6 {
		c.passes.Add(1)
	}
	return c.UniversalClient.Process(ctx, cmd)
}

// stuckTwice is a client whose second acquire waits before it is sent.
type stuckTwice struct {
	redis.UniversalClient
	mu       sync.Mutex
	seen     int
	here, on chan struct{}
}

func (c *stuckTwice) Process(ctx context.Context, cmd redis.Cmder) error {
	if text := cmd.String(); strings.HasPrefix(text, "evalsha") && strings.Contains(text, acquireScript.SHA()) {
		c.mu.Lock()
		c.seen++
		second := c.seen == 2
		c.mu.Unlock()
		if second {
			close(c.here)
			<-c.on
		}
	}
	return c.UniversalClient.Process(ctx, cmd)
}

// A release waits for one round trip, even if its reply hands over a lock that no caller
// wants any more. That lock is given back in the background.
func TestReleaseDoesNotWaitForItsHandoff(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	prefix := srv.Prefix(t)
	client := halt(srv.Client(t), false)
	opts := unasking()
	opts.Budget = time.Minute
	l := locker(t, client, prefix, opts)
	if err := l.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	held := try(t, l)
	ctx, leave := context.WithCancel(t.Context())
	_, failed := queue(t, l, ctx)
	stuck := &stuckRelease{UniversalClient: client.UniversalClient, on: make(chan struct{})}
	defer close(stuck.on)
	go func() {
		<-client.here
		leave()
		<-failed[0]
		client.UniversalClient = stuck
		close(client.on)
	}()
	done := make(chan error, 1)
	go func() { done <- held.Release(t.Context()) }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("the release: got %v, want no error", err)
		}
	case <-time.After(soon):
		t.Errorf("the release: got no answer within %v, want one at once, whatever becomes of the lock", soon)
	}
}

// stuckRelease is a client that sends no release.
type stuckRelease struct {
	redis.UniversalClient
	on chan struct{}
}

func (c *stuckRelease) Process(ctx context.Context, cmd redis.Cmder) error {
	if strings.Contains(cmd.String(), releaseScript.SHA()) {
		<-c.on
	}
	return c.UniversalClient.Process(ctx, cmd)
}

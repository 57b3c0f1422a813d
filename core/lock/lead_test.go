package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
)

// candidate is a call of Lead.
type candidate struct {
	led      chan leadership
	returned chan error
}

// leadership is one run of the function, which returns what the test says.
type leadership struct {
	ctx  context.Context
	held *lock.Lock
	end  chan<- error
}

func stand(ctx context.Context, l *lock.Locker) *candidate {
	c := &candidate{make(chan leadership, 1), make(chan error, 1)}
	go func() {
		c.returned <- l.Lead(ctx, "key", func(ctx context.Context) error {
			held, _ := lock.FromContext(ctx)
			end := make(chan error)
			c.led <- leadership{ctx, held, end}
			return <-end
		})
	}()
	return c
}

// leads returns the run that begins within the bound.
func (c *candidate) leads(t *testing.T, bound time.Duration) leadership {
	t.Helper()
	select {
	case run := <-c.led:
		return run
	case err := <-c.returned:
		t.Fatalf("Lead: got %v, want a run", err)
	case <-time.After(bound):
		t.Fatalf("Lead: got no run within %v, want one", bound)
	}
	panic("not reached")
}

// waits checks that for the given time no run begins and Lead does not return.
func (c *candidate) waits(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-c.led:
		t.Fatal("Lead: got a run, want none")
	case err := <-c.returned:
		t.Fatalf("Lead: got %v, want it to wait", err)
	case <-time.After(d):
	}
}

// returns checks what Lead returned.
func (c *candidate) returns(t *testing.T, want error) {
	t.Helper()
	select {
	case err := <-c.returned:
		if err != want {
			t.Errorf("Lead: got %v, want %v itself", err, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("Lead: got no return within a minute, want %v", want)
	}
}

// inBubble runs a test in a bubble of synctest, with a Redis and a clock of its own.
func inBubble(t *testing.T, test func(t *testing.T, m *miniredis.Miniredis, rdb *redistest.CutClient)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := redistest.Bubble(t)
		rdb := &redistest.CutClient{Client: redistest.BubbleClient(t, m)}
		defer func() { // so that neap finds what it looks for in the background
			rdb.Mend()
			time.Sleep(time.Hour)
		}()
		test(t, m, rdb)
	})
}

// TestLead lets two processes lead, one after the other. Each stops leading when its
// function returns.
func TestLead(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redistest.CutClient) {
		l, fence := locker(t, rdb, "neap", nil), int64(0)
		first := stand(t.Context(), l)
		for _, end := range []error{errJob, nil, context.Canceled} {
			run := first.leads(t, time.Second)
			if run.held.Fence() <= fence || run.ctx.Err() != nil {
				t.Errorf("got the fence %d and the context's %v, want one above %d and none",
					run.held.Fence(), run.ctx.Err(), fence)
			}
			fence = run.held.Fence()
			next := locker(t, rdb, "neap", nil)
			second := stand(t.Context(), next)
			second.waits(t, 2*defaultLease)
			run.end <- end
			first.returns(t, end)
			if got := l.Stats(); got.Granted != 1 || got.Lost+got.Failed+got.Held+uint64(got.Holding) != 0 {
				t.Errorf("got stats %+v, want 1 granted and nothing else", got)
			}
			first, l = second, next
		}
		first.leads(t, time.Second).end <- nil
		first.returns(t, nil)
	})
}

// TestLeadIsLost ends the leadership in each way. Lead runs the function again, whatever
// it returned, but only after it has returned.
func TestLeadIsLost(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	type world struct {
		m     *miniredis.Miniredis
		rdb   *redistest.CutClient
		other *lock.Locker
	}
	force := func(t *testing.T, w world) {
		if was, err := w.other.ForceRelease(t.Context(), "key"); !was || err != nil {
			t.Errorf("ForceRelease: got %v, %v, want true and no error", was, err)
		}
	}
	for name, c := range map[string]struct {
		opts lock.Options
		end  func(t *testing.T, w world)
		want error
	}{
		"forced":  {end: force, want: lock.ErrLost},
		"deleted": {end: func(_ *testing.T, w world) { w.m.Del("neap:lock:test:{key}") }, want: lock.ErrLost},
		"taken over": {end: func(t *testing.T, w world) {
			force(t, w)
			held := try(t, w.other)
			time.AfterFunc(3*time.Minute, func() { release(t, held) })
		}, want: lock.ErrTakenByOther},
		"refused": {end: func(_ *testing.T, w world) {
			w.rdb.Cut("refused")
			time.AfterFunc(time.Minute, w.rdb.Mend)
		}, want: lock.ErrExpired},
		"silent": {end: func(_ *testing.T, w world) {
			w.rdb.Cut("silent")
			time.AfterFunc(time.Minute, w.rdb.Mend)
		}, want: lock.ErrExpired},
		"MaxHold":    {opts: lock.Options{MaxHold: time.Minute}, end: func(*testing.T, world) {}, want: lock.ErrMaxHold},
		"no renewal": {opts: lock.Options{NoRenewal: true}, end: func(*testing.T, world) {}, want: lock.ErrExpired},
	} {
		for how, end := range map[string]error{"returns nil": nil, "fails": errJob} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redistest.CutClient) {
					opts := c.opts
					opts.Lease, opts.Budget = ttl, time.Second
					l := locker(t, rdb, "neap", &opts)
					w := world{m, rdb, locker(t, rdb.Client, "neap", nil)}
					leader := stand(t.Context(), l)
					run := leader.leads(t, time.Second)
					c.end(t, w)
					<-run.ctx.Done()
					if got := context.Cause(run.ctx); !errors.Is(got, c.want) {
						t.Errorf("the context: got the cause %v, want %v", got, c.want)
					}
					leader.waits(t, 2*time.Minute)
					run.end <- end
					again := leader.leads(t, 2*time.Minute)
					if again.held.Fence() <= run.held.Fence() || again.ctx.Err() != nil {
						t.Errorf("again: got the fence %d and the context's %v, want one above %d and none",
							again.held.Fence(), again.ctx.Err(), run.held.Fence())
					}
					again.end <- end
					leader.returns(t, end)
					if got := l.Stats(); got.Granted != 2 || got.Lost != 1 || got.Holding != 0 {
						t.Errorf("got stats %+v, want 2 granted, 1 lost and 0 holding", got)
					}
				})
			})
		}
	}
}

// TestLeadLearnsOfALossFromTheRelease: the function may return before a renewal finds the
// loss, because the database has refused its fence.
func TestLeadLearnsOfALossFromTheRelease(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redistest.CutClient) {
		leader := stand(t.Context(), locker(t, rdb, "neap", nil))
		run, other := leader.leads(t, time.Second), locker(t, rdb, "neap", nil)
		if was, err := other.ForceRelease(t.Context(), "key"); !was || err != nil {
			t.Fatalf("ForceRelease: got %v, %v, want true and no error", was, err)
		}
		held := try(t, other)
		run.end <- errJob
		leader.waits(t, time.Minute)
		release(t, held)
		leader.leads(t, time.Second).end <- errJob
		leader.returns(t, errJob)
	})
}

// TestLeadEndsWithItsContext: the process leads until its function has returned.
func TestLeadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redistest.CutClient) {
		const ttl = 3 * time.Second
		for _, end := range []error{nil, errJob} {
			ctx, cancel := context.WithCancel(t.Context())
			l := locker(t, rdb, "neap", &lock.Options{Lease: ttl})
			leader := stand(ctx, l)
			run := leader.leads(t, time.Second)
			follower, another := stand(ctx, locker(t, rdb, "neap", nil)), stand(t.Context(), locker(t, rdb, "neap", nil))
			another.waits(t, time.Minute)
			cancel()
			<-run.ctx.Done()
			follower.returns(t, context.Canceled)
			if cause := context.Cause(run.ctx); cause != context.Canceled {
				t.Errorf("the context: got the cause %v, want Canceled", cause)
			}
			another.waits(t, 10*ttl)
			run.end <- end
			leader.returns(t, end)
			another.leads(t, time.Second).end <- nil
			another.returns(t, nil)
			if got := l.Stats(); got.Lost != 0 || got.Granted != 1 {
				t.Errorf("got stats %+v, want 1 granted and 0 lost", got)
			}
		}
	})
}

// TestLeadIsLostAtItsEnd ends ctx first, and then the leadership.
func TestLeadIsLostAtItsEnd(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redistest.CutClient) {
		ctx, cancel := context.WithCancel(t.Context())
		leader := stand(ctx, locker(t, rdb, "neap", &lock.Options{MaxHold: time.Minute}))
		run := leader.leads(t, time.Second)
		cancel()
		time.Sleep(time.Hour)
		run.end <- errJob
		if err := <-leader.returned; !errors.Is(err, errJob) || !errors.Is(err, lock.ErrMaxHold) {
			t.Errorf("Lead: got %v, want what the function returned and ErrMaxHold", err)
		}
	})
}

func TestLeadPanics(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redistest.CutClient) {
		l := locker(t, rdb, "neap", nil)
		func() {
			defer func() {
				if p := recover(); p != errJob {
					t.Errorf("Lead of a function that panics: got the panic %v, want %v", p, errJob)
				}
			}()
			_ = l.Lead(t.Context(), "key", func(context.Context) error { panic(errJob) })
		}()
		release(t, try(t, l))
	})
}

// TestLeadNested calls Lead inside a Lead: for the same key, for which it would wait for
// itself, for another key, and as an owner.
func TestLeadNested(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redistest.CutClient) {
		l := locker(t, rdb, "neap", nil)
		leader := stand(t.Context(), l.As("me"))
		run := leader.leads(t, time.Second)
		ctx, cancel := context.WithTimeout(run.ctx, time.Minute)
		defer cancel()
		if err := l.Lead(ctx, "key", nothing); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("Lead of the key that ctx leads: got %v, want ErrHeld", err)
		}
		if err := l.Lead(run.ctx, "another", nothing); err != nil {
			t.Errorf("Lead of another key: got %v, want no error", err)
		}
		mine, elsewhere := stand(t.Context(), l.As("me")), stand(t.Context(), locker(t, rdb, "neap", nil).As("me"))
		mine.waits(t, time.Minute)
		elsewhere.waits(t, time.Minute)
		run.end <- nil
		leader.returns(t, nil)
		for range 2 {
			select {
			case run = <-mine.led:
			case run = <-elsewhere.led:
			case <-time.After(time.Minute):
				t.Fatal("got no leader within a minute, want one")
			}
			run.end <- nil
		}
		mine.returns(t, nil)
		elsewhere.returns(t, nil)
	})
}

// TestLeadFollowsAtShutdown: the next process leads within seconds. By itself it would
// ask only after an hour.
func TestLeadFollowsAtShutdown(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		ctx, cancel := context.WithCancel(t.Context())
		leader := stand(ctx, locker(t, rdb, prefix, unasking()))
		run := leader.leads(t, soon)
		for range 4 {
			nextCtx, nextCancel := context.WithCancel(t.Context())
			next := stand(nextCtx, locker(t, rdb, prefix, unasking()))
			wantsWaking(t, admin, recordOf(prefix, "key"))
			cancel()
			<-run.ctx.Done()
			run.end <- nil
			successor := next.leads(t, soon)
			leader.returns(t, nil)
			leader, run, cancel = next, successor, nextCancel
		}
		cancel()
		run.end <- nil
		leader.returns(t, nil)
	})
}

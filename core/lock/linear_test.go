package lock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/history"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

const (
	linearWorkers = 8
	linearKeys    = 4         // at a time
	linearTTL     = time.Hour // twice of what a history may take on a busy machine
)

// linearBudgets are the budgets of the lockers. The first is shorter than many pauses;
// the others are long enough for a busy machine.
var linearBudgets = []time.Duration{200 * time.Millisecond, time.Second, 2 * time.Second, 2 * time.Second}

// grant is a lock that a worker holds: a [*lock.Lock], or that of a control.
type grant interface {
	Fence() int64
	Extend(ctx context.Context, ttl time.Duration) error
	Release(ctx context.Context) error
}

// mutex is what a worker locks with: a Locker, or a control.
type mutex interface {
	ask(ctx context.Context, key string, wait bool) (grant, error)
	ForceRelease(ctx context.Context, key string) (bool, error)
	Inspect(ctx context.Context, key string) (lock.State, error)
}

type neap struct{ *lock.Locker }

func (l neap) ask(ctx context.Context, key string, wait bool) (grant, error) {
	ask := l.Try
	if wait {
		ask = l.Acquire
	}
	held, err := ask(ctx, key)
	if err != nil {
		return nil, err
	}
	return held, nil
}

// recorder records a history.
type recorder struct {
	*history.Recorder
	holds atomic.Int64

	mu     sync.Mutex
	passes map[any]pass     // by the successor's hold
	given  map[grantee]pass // by the key and the fence that its holder is told

	stood sync.Map // the keys for which somebody has waited
}

// worker performs operations, one at a time.
type worker struct {
	id       int
	rng      *rand.Rand
	mutex    mutex
	recorder *recorder
	has      []possession
}

type possession struct {
	grant
	key  string
	hold int
	lost bool
}

func (w *worker) step(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	key := w.recorder.Key(w.rng.IntN(linearKeys))
	switch n := w.rng.IntN(20); {
	case n == 0:
		w.force(ctx, key)
	case n == 1:
		w.inspect(ctx, key)
	case len(w.has) == 0 || len(w.has) < 3 && n < 5:
		w.acquire(ctx, t, key, n%3 == 0)
	case n < 12:
		w.extend(ctx, t, &w.has[w.rng.IntN(len(w.has))])
	default:
		i := w.rng.IntN(len(w.has))
		p := w.has[i]
		w.has = append(w.has[:i], w.has[i+1:]...)
		w.release(ctx, t, p)
	}
}

func (w *worker) acquire(ctx context.Context, t *testing.T, key string, wait bool) {
	t.Helper()
	sent := &history.Calls{}
	ctx = history.WithCalls(ctx, sent)
	call := w.recorder.Now()
	a := asked{acquires, key, int(w.recorder.holds.Add(1)), call}
	if wait {
		w.recorder.stood.Store(key, true)
	}
	held, err := w.mutex.ask(ctx, key, wait)
	switch {
	case err == nil:
		w.recorder.accepted(key, held.Fence())
		w.recorder.Add(w.id, a, call, told{fence: held.Fence()})
		w.has = append(w.has, possession{grant: held, key: key, hold: a.hold})
	case errors.Is(err, lock.ErrHeld):
		_, stood := w.recorder.stood.Load(key)
		w.recorder.Add(w.id, a, call, told{err: err, stood: stood})
	case !isUnknown(err):
		t.Errorf("acquire: got %v, want a grant, ErrHeld or an unknown end", err)
	}
	doubts := sent.Doubts()
	if errors.Is(err, script.ErrMaybeExecuted) {
		doubts = max(doubts, 1)
	}
	for range doubts { // each call may be granted, and each grant may be taken back
		w.recorder.Open(w.id, asked{verb: mayAcquire, key: key, hold: a.hold}, call, told{})
		w.recorder.Open(w.id, asked{verb: mayRelease, key: key, hold: a.hold}, call, told{})
	}
}

func (w *worker) extend(ctx context.Context, t *testing.T, p *possession) {
	t.Helper()
	if p.lost {
		return
	}
	call := w.recorder.Now()
	err := p.Extend(ctx, linearTTL)
	p.lost = isLoss(err)
	switch {
	case err == nil, p.lost:
		w.recorder.Add(w.id, asked{verb: extends, key: p.key, hold: p.hold}, call, told{err: err, fence: p.Fence()})
	case !isUnknown(err):
		t.Errorf("extend: got %v, want no error, a loss or an unknown end", err)
	}
}

func (w *worker) release(ctx context.Context, t *testing.T, p possession) {
	t.Helper()
	call := w.recorder.Now()
	err := p.Release(ctx)
	switch {
	case p.lost && isLoss(err), isUnknown(err):
		// The lock is known to be lost. So a call that came late may have been carried
		// out now.
		w.recorder.Open(w.id, asked{verb: mayRelease, key: p.key, hold: p.hold}, call, told{})
	case err == nil, isLoss(err):
		w.recorder.Add(w.id, asked{verb: releases, key: p.key, hold: p.hold}, call, told{err: err, fence: p.Fence(), by: w.recorder.Now()})
	default:
		t.Errorf("release: got %v, want no error, a loss or an unknown end", err)
	}
}

func (w *worker) force(ctx context.Context, key string) {
	call := w.recorder.Now()
	was, err := w.mutex.ForceRelease(ctx, key)
	if err != nil {
		w.recorder.Open(w.id, asked{verb: mayForce, key: key}, call, told{})
		return
	}
	w.recorder.Add(w.id, asked{verb: forces, key: key}, call, told{held: was})
}

func (w *worker) inspect(ctx context.Context, key string) {
	call := w.recorder.Now()
	if s, err := w.mutex.Inspect(ctx, key); err == nil {
		w.recorder.Add(w.id, asked{verb: inspects, key: key}, call, told{held: s.Held, fence: s.Fence})
	}
}

// isLoss reports whether err says that a hold is over. No lease expires here.
func isLoss(err error) bool {
	return errors.Is(err, lock.ErrLost) || errors.Is(err, lock.ErrTakenByOther)
}

// TestLinearizable runs 8 workers that try, acquire, extend, release and force 4 locks.
// Replies are lost, connections are reset, the server is paused, and its scripts are
// flushed. The results of the workers must be those of some order in which the operations
// happen one after the other.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	c := history.Plan{
		Model: model, End: end, Histories: redistest.Ops(200_000) / 1000, Lease: linearTTL,
		Workers: func(t *testing.T, d *history.Recorder, rdbs []*redis.Client, prefix string, seed uint64) (steps []func(*testing.T)) {
			t.Helper()
			own := &recorder{Recorder: d, passes: map[any]pass{}, given: map[grantee]pass{}}
			var lockers []*lock.Locker
			for i, rdb := range rdbs {
				l, err := lock.New(storetest.At(t, successors{history.Client{Client: rdb, Recorder: d}, own}, prefix), "linear", &lock.Options{
					Budget: linearBudgets[i%len(linearBudgets)], Lease: linearTTL, NoRenewal: true,
					Wait: 20 * time.Millisecond, RetryDelay: 5 * time.Millisecond,
				})
				if err != nil {
					t.Fatal(err)
				}
				lockers = append(lockers, l)
			}
			for i := range linearWorkers {
				w := &worker{id: i, rng: rand.New(rand.NewPCG(seed, uint64(1+i))), mutex: neap{lockers[i%len(lockers)]}, recorder: own}
				steps = append(steps, w.step)
			}
			return steps
		},
	}
	c.Run(t)
}

package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

const (
	linearWorkers = 8
	linearKeys    = 4
	linearOps     = 1000
	linearTTL     = time.Minute // twice of what a history may take on a busy machine
)

// grant is a lock that somebody has: a [*lock.Lock], or that of a control.
type grant interface {
	Fence() int64
	Extend(ctx context.Context, ttl time.Duration) error
	Release(ctx context.Context) error
}

// mutex is what a worker uses: a Locker, or a control.
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

// diary is a history that is being made.
type diary struct {
	began time.Time
	holds atomic.Int64

	mu  sync.Mutex
	ops []porcupine.Operation
}

func (d *diary) now() int64 { return int64(time.Since(d.began)) }

func (d *diary) add(worker int, a asked, call int64, o told) {
	op := porcupine.Operation{ClientId: worker, Input: a, Call: call, Output: o, Return: d.now()}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops = append(d.ops, op)
}

// open is an operation of which nobody knows when, or whether, it happens.
func (d *diary) open(worker int, a asked, call int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops = append(d.ops, porcupine.Operation{ClientId: worker, Input: a, Call: call, Output: told{}, Return: math.MaxInt64})
}

// post counts what one operation sent, and what of it was answered.
type post struct{ sent, answered atomic.Int64 }

type postKey struct{}

// counting is a client that counts for the operation whose context it is given.
type counting struct{ *redis.Client }

func (c counting) Process(ctx context.Context, cmd redis.Cmder) error {
	p, ok := ctx.Value(postKey{}).(*post)
	if !ok {
		return c.Client.Process(ctx, cmd) // an undo
	}
	p.sent.Add(1)
	err := c.Client.Process(ctx, cmd)
	if _, reply := errors.AsType[redis.Error](err); err == nil || reply {
		p.answered.Add(1)
	}
	return err
}

// worker makes operations, one at a time.
type worker struct {
	id    int
	rng   *rand.Rand
	mutex mutex
	diary *diary
	has   []possession
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
	key := fmt.Sprint("key", w.rng.IntN(linearKeys))
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
	a := asked{acquires, key, int(w.diary.holds.Add(1))}
	sent := &post{}
	ctx = context.WithValue(ctx, postKey{}, sent)
	call := w.diary.now()
	held, err := w.mutex.ask(ctx, key, wait)
	switch {
	case err == nil:
		w.diary.add(w.id, a, call, told{fence: held.Fence()})
		w.has = append(w.has, possession{grant: held, key: key, hold: a.hold})
	case errors.Is(err, lock.ErrHeld):
		w.diary.add(w.id, a, call, told{err: err})
	case !isUnknown(err):
		t.Errorf("acquire: %v", err)
	}
	doubts := sent.sent.Load() - sent.answered.Load()
	if errors.Is(err, script.ErrMaybeExecuted) {
		doubts = max(doubts, 1)
	}
	for range doubts {
		w.diary.open(w.id, asked{mayAcquire, key, a.hold}, call)
	}
	if doubts > 0 {
		w.diary.open(w.id, asked{mayRelease, key, a.hold}, call)
	}
}

func (w *worker) extend(ctx context.Context, t *testing.T, p *possession) {
	t.Helper()
	if p.lost {
		return
	}
	call := w.diary.now()
	err := p.Extend(ctx, linearTTL)
	p.lost = isLoss(err)
	switch {
	case err == nil, p.lost:
		w.diary.add(w.id, asked{extends, p.key, p.hold}, call, told{err: err, fence: p.Fence()})
	case !isUnknown(err):
		t.Errorf("extend: %v", err)
	}
}

func (w *worker) release(ctx context.Context, t *testing.T, p possession) {
	t.Helper()
	call := w.diary.now()
	err := p.Release(ctx)
	switch {
	case p.lost && isLoss(err), isUnknown(err):
		// Of a lock that is known to be lost, what came late may have come now.
		w.diary.open(w.id, asked{mayRelease, p.key, p.hold}, call)
	case err == nil, isLoss(err):
		w.diary.add(w.id, asked{releases, p.key, p.hold}, call, told{err: err, fence: p.Fence()})
	default:
		t.Errorf("release: %v", err)
	}
}

func (w *worker) force(ctx context.Context, key string) {
	call := w.diary.now()
	was, err := w.mutex.ForceRelease(ctx, key)
	if err != nil {
		w.diary.open(w.id, asked{mayForce, key, 0}, call)
		return
	}
	w.diary.add(w.id, asked{forces, key, 0}, call, told{held: was})
}

func (w *worker) inspect(ctx context.Context, key string) {
	call := w.diary.now()
	if s, err := w.mutex.Inspect(ctx, key); err == nil {
		w.diary.add(w.id, asked{inspects, key, 0}, call, told{held: s.Held, fence: s.Fence})
	}
}

// isLoss says that a hold is over; a lease that is does not happen here.
func isLoss(err error) bool {
	return errors.Is(err, lock.ErrLost) || errors.Is(err, lock.ErrTakenByOther)
}

// trouble is what befalls the server and its clients as a history goes on.
type trouble struct {
	srv   *redistest.Server
	admin *redis.Client
	proxy *redistest.Proxy
	rng   *rand.Rand
	pause int // at which operation
}

func (x *trouble) at(t *testing.T, op int) {
	t.Helper()
	switch {
	case op == x.pause:
		x.srv.Pause(t)
		<-time.After(time.Duration(20+x.rng.IntN(300)) * time.Millisecond)
		x.srv.Resume(t)
	case op%25 == 0:
		x.proxy.Lose([]redistest.Fault{redistest.EOF, redistest.Reset}[x.rng.IntN(2)], 1, "evalsha", "eval")
	case op%200 == 60:
		x.proxy.Lose(redistest.Silence, 1, "evalsha", "eval")
	case op%250 == 110:
		x.admin.ScriptFlush(t.Context())
	case op%250 == 160:
		x.admin.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes")
	}
}

// TestLinearizable has 8 workers try, acquire, extend, release and force 4
// locks, with replies lost, connections reset, the server paused and its
// scripts flushed: what they were told is what one lock after the other could
// have told them.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	const servers = 2
	for i := range servers {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			srv := redistest.NewStandalone(t)
			x := &trouble{srv: srv, admin: srv.Admin(t), proxy: srv.Proxy(t)}
			var clients []counting
			for range linearWorkers / 2 {
				clients = append(clients, counting{srv.Client(t, func(o *redis.Options) {
					o.Dialer, o.PoolSize = x.proxy.Dial, 50
					o.ReadTimeout, o.WriteTimeout = 400*time.Millisecond, 400*time.Millisecond
				})})
			}
			prefix := srv.Prefix(t)
			all, longest := 0, time.Duration(0)
			histories := redistest.Ops(200_000) / 1000 / servers
			for h := range histories {
				seed := rand.Uint64()
				x.rng = rand.New(rand.NewPCG(seed, 0))
				x.pause = x.rng.IntN(linearOps)
				began := time.Now()
				d := linearHistory(t, x, clients, fmt.Sprint(prefix, "-", h), seed)
				took := time.Since(began)
				if took > linearTTL/2 {
					t.Fatalf("seed %d: the history took %v: its leases may have lapsed", seed, took)
				}
				answered := 0
				for _, op := range d.ops {
					if op.Return != math.MaxInt64 {
						answered++
					}
				}
				if result := check(d.ops); result != porcupine.Ok || answered < linearOps {
					draw(t, d.ops)
					t.Fatalf("seed %d: the history is %s; %d operations were answered", seed, result, answered)
				}
				all, longest = all+answered, max(longest, time.Since(began)-took)
			}
			t.Logf("%d histories of %d operations, each checked in %v at the most", histories, all/histories, longest)
		})
	}
}

// draw leaves a picture of a history for -artifacts, up to where it goes wrong.
func draw(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	_, info := porcupine.CheckOperationsVerbose(model, history, time.Minute)
	path := filepath.Join(t.ArtifactDir(), "history.html")
	if err := porcupine.VisualizePath(model, info, path); err != nil {
		t.Error(err)
	}
	t.Log(path)
}

func linearHistory(t *testing.T, x *trouble, clients []counting, prefix string, seed uint64) *diary {
	t.Helper()
	d := &diary{began: time.Now()}
	var lockers []*lock.Locker
	for _, c := range clients {
		l, err := lock.New(c, "linear", &lock.Options{
			Prefix: prefix, Budget: 150 * time.Millisecond, TTL: linearTTL, NoRenewal: true,
			Wait: 20 * time.Millisecond, RetryDelay: lock.MinRetryDelay,
		})
		if err != nil {
			t.Fatal(err)
		}
		lockers = append(lockers, l)
	}
	var ops atomic.Int64
	var troubled sync.Mutex
	var wg sync.WaitGroup
	for i := range linearWorkers {
		w := &worker{id: i, rng: rand.New(rand.NewPCG(seed, uint64(1+i))), mutex: neap{lockers[i%len(lockers)]}, diary: d}
		wg.Go(func() {
			for op := int(ops.Add(1)); op <= linearOps*6/5; op = int(ops.Add(1)) {
				troubled.Lock()
				x.at(t, op)
				troubled.Unlock()
				w.step(t)
			}
		})
	}
	wg.Wait()
	return d
}

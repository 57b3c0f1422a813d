package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// increment counts how often it ran.
var increment = script.New("increment.lua", `
local n = redis.call('INCRBY', KEYS[1], 1)
redis.call('PEXPIRE', KEYS[1], 3600000)
return n`).Batched()

// stormed is one of each primitive. Each call has a key of its own.
type stormed struct {
	prefix string
	runner *script.Runner
	limit  *limit.Limiter
	lock   *lock.Locker
	guard  *idempotency.Guard
	stock  *stock.Stock
}

func newStormed(t *testing.T, st *store.Store, prefix string) *stormed {
	t.Helper()
	s := &stormed{prefix: prefix}
	var errs [5]error
	s.runner, errs[0] = script.NewRunner(st, nil)
	s.limit, errs[1] = limit.New(st, "storm", []limit.Policy{limit.FixedWindow{Limit: 1000, Window: time.Hour}},
		&limit.Options{Fail: limit.FailClosed})
	s.lock, errs[2] = lock.New(st, "storm", &lock.Options{Lease: time.Hour})
	s.guard, errs[3] = idempotency.New(st, "storm", &idempotency.Options{Lease: time.Hour})
	s.stock, errs[4] = stock.New(st, "storm", &stock.Options{Lease: time.Hour})
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return s
}

// ask makes a call of one of the primitives. The key is where Redis has what came of it.
func (s *stormed) ask(ctx context.Context, id int) (key string, err error) {
	name := "s" + strconv.Itoa(id)
	switch id % 8 {
	case 0:
		_, err = s.lock.Try(ctx, name)
		return s.prefix + ":lock:storm:{" + name + "}", err
	case 1:
		_, err = s.guard.Begin(ctx, name, "")
		return s.prefix + ":guard:storm:{" + name + "}", err
	case 2, 3:
		key = s.prefix + ":own:{" + name + "}"
		_, err = s.runner.Run(ctx, increment, []string{key})
		return key, err
	default:
		var d limit.Decision
		d, err = s.limit.Take(ctx, name)
		if err == nil && (!d.Allowed || d.Remaining != 999) {
			err = fmt.Errorf("got %+v, want the first permit of a limit", d)
		}
		return s.prefix + ":limit:storm:{" + name + "}:", err
	}
}

// isRecord says that a key has a record, which a second run does not change. A lock or a guard asks again
// after a lost answer, and returns the error of its last attempt.
func isRecord(key string) bool {
	return strings.Contains(key, ":lock:") || strings.Contains(key, ":guard:")
}

// ran is how often the call of a key ran, as Redis has it.
func ran(ctx context.Context, rdb redis.UniversalClient, key string) (int, error) {
	if strings.HasSuffix(key, ":") { // the numbers of the policy follow
		key += "window-1000-1h"
	}
	if isRecord(key) {
		n, err := rdb.Exists(ctx, key).Result()
		return int(n), err
	}
	n, err := rdb.Get(ctx, key).Int()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return n, err
}

// TestStorm has callers of every primitive on one queue while their connections are cut at any byte, the
// server forgets its scripts and stands still, slots move, and callers go. Redis counts how often each call
// ran: never twice, and as its caller was told.
func TestStorm(t *testing.T) {
	t.Parallel()
	for _, cluster := range []bool{false, true} {
		for _, timeouts := range []bool{false, true} {
			t.Run(fmt.Sprintf("cluster=%t/ContextTimeoutEnabled=%t", cluster, timeouts), func(t *testing.T) {
				t.Parallel()
				cutter := redistest.NewCutter(t)
				w := &weather{cutter: cutter, moved: map[int64]bool{}}
				var rdb redis.UniversalClient
				if cluster {
					w.cluster = redistest.NewCluster(t)
					w.servers = w.cluster.Nodes()
					rdb = w.cluster.Client(t, func(o *redis.ClusterOptions) { o.Dialer, o.ContextTimeoutEnabled = cutter.Dial, timeouts })
				} else {
					w.servers = []*redistest.Server{redistest.NewStandalone(t)}
					rdb = w.servers[0].Client(t, func(o *redis.Options) { o.Dialer, o.ContextTimeoutEnabled = cutter.Dial, timeouts })
				}
				storm(t, rdb, w)
			})
		}
	}
}

// told is what a caller was told of its call.
type told struct {
	key string
	err error
}

func storm(t *testing.T, rdb redis.UniversalClient, w *weather) {
	prefix := redistest.Prefix(t)
	st := storetest.Open(t, rdb, store.Options{Prefix: prefix, Budget: 100 * time.Millisecond, Queue: store.Queued})
	s := newStormed(t, st, prefix)
	redistest.Await(t, 20*time.Second, "a first call", func() bool {
		_, err := s.ask(t.Context(), 0)
		return err == nil
	})
	const callers = 128
	each := max(redistest.Ops(250_000)/callers, 1)
	var all sync.WaitGroup
	var ids atomic.Int64
	results := make([][]told, callers)
	seed := redistest.Seed(t)
	for caller := range callers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(caller)))
			for range each {
				redistest.Await(t, time.Minute, "a call that is sent", func() bool {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if r.IntN(5) == 0 {
						time.AfterFunc(time.Duration(r.IntN(5000))*time.Microsecond, cancel)
					}
					key, err := s.ask(ctx, int(ids.Add(1)))
					results[caller] = append(results[caller], told{key, err})
					w.ended.Add(1)
					return !errors.Is(err, script.ErrNotExecuted)
				})
			}
		})
	}
	w.cutter.Cut(1 << 14)
	var faults sync.WaitGroup
	faults.Go(func() { w.blow(t, rand.New(rand.NewPCG(seed, callers))) })
	all.Wait()
	w.over.Store(true)
	faults.Wait()
	w.cutter.Cut(0)
	w.count(t, results)
	t.Logf("%d connections were cut", w.cutter.Cuts())
}

// count compares what callers were told with what Redis has.
func (w *weather) count(t *testing.T, results [][]told) {
	t.Helper()
	var admin redis.UniversalClient
	if w.cluster != nil {
		admin = w.cluster.Admin(t)
	} else {
		admin = w.servers[0].Admin(t)
	}
	classes := map[string]int{}
	for _, of := range results {
		for _, one := range of {
			n, err := ran(t.Context(), admin, one.key)
			if err != nil {
				t.Fatalf("%s: got %v, want a count", one.key, err)
			}
			class := "not executed"
			switch {
			case one.err == nil:
				class = "executed"
			case errors.Is(one.err, context.Canceled):
				class = "canceled"
			case errors.Is(one.err, script.ErrMaybeExecuted):
				class = "maybe executed"
			case !errors.Is(one.err, script.ErrNotExecuted):
				t.Errorf("%s: got %v, want a class of error that faults explain", one.key, one.err)
			}
			classes[class]++
			wrong := n > 1
			switch class {
			case "executed":
				wrong = n > 1 || n == 0 && !w.moved[admin.ClusterKeySlot(t.Context(), one.key).Val()]
			case "not executed":
				wrong = n != 0 && !isRecord(one.key)
			}
			if wrong {
				t.Errorf("%s: the caller was told %q (%v), and it ran %d times", one.key, class, one.err, n)
			}
		}
	}
	t.Logf("callers were told: %v", classes)
	if classes["executed"] == 0 || classes["canceled"] == 0 {
		t.Errorf("got %v, want some that were executed and some that were canceled", classes)
	}
}

// weather is what happens meanwhile.
type weather struct {
	cutter  *redistest.Cutter
	servers []*redistest.Server
	cluster *redistest.ClusterServer // nil of a server
	moved   map[int64]bool           // slots, whose other keys stayed behind

	ended atomic.Int64 // calls
	over  atomic.Bool
}

// await waits until so many more calls have ended, and reports whether any are to come.
func (w *weather) await(t *testing.T, calls int) bool {
	t.Helper()
	until := w.ended.Load() + int64(calls)
	redistest.Await(t, time.Minute, "calls to end", func() bool { return w.over.Load() || w.ended.Load() >= until })
	return !w.over.Load()
}

func (w *weather) blow(t *testing.T, r *rand.Rand) {
	t.Helper()
	for n := 0; w.await(t, r.IntN(200)); n++ {
		server := w.servers[r.IntN(len(w.servers))]
		switch r.IntN(8) {
		case 0:
			if err := server.Admin(t).ScriptFlush(t.Context()).Err(); err != nil {
				t.Errorf("SCRIPT FLUSH: got %v, want no error", err)
			}
		case 1:
			server.Pause(t)
			w.await(t, r.IntN(200)) // those of the time end with their budget
			server.Resume(t)
		case 2:
			if w.cluster != nil {
				key := fmt.Sprintf("{moved%d}", n)
				w.moved[w.cluster.Admin(t).ClusterKeySlot(t.Context(), key).Val()] = true
				w.cluster.MoveSlot(t, key, func() {})
			}
		case 3, 4:
			w.cutter.Cut(0)
		default:
			w.cutter.Cut(1 << (9 + r.IntN(7)))
		}
	}
}

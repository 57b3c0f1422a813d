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
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// attempt is a way to change a key that no other call changes.
type attempt struct {
	ask func(ctx context.Context, name string) error
	key string // with NAME in it
	// count returns how often the call ran, as Redis has it.
	count func(ctx context.Context, rdb redis.UniversalClient, key string) (int64, error)
	// repeats says that a lost call is made again, which changes nothing more. The error
	// is that of the last attempt, so a call with "not executed" may have run before.
	repeats bool
}

// attempts returns one attempt of each primitive.
func attempts(t *testing.T, st *store.Store, prefix string) []attempt {
	t.Helper()
	const name, lease = "faults", 24 * time.Hour // nothing is renewed however long the test takes
	var errs [6]error
	runner, err := script.NewRunner(st, nil)
	errs[0] = err
	limiter, err := limit.New(st, name, []limit.Policy{limit.FixedWindow{Limit: 1000, Window: lease}},
		&limit.Options{Fail: store.FailClosed})
	errs[1] = err
	slots, err := inflight.New(st, name, 10, &inflight.Options{Lease: lease, Fail: store.FailClosed})
	errs[2] = err
	locks, err := lock.New(st, name, &lock.Options{Lease: lease})
	errs[3] = err
	guard, err := idempotency.New(st, name, idempotency.Retry{}, &idempotency.Options{Lease: lease})
	errs[4] = err
	sale, err := stock.New(st, name, &stock.Options{Lease: lease})
	errs[5] = err
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	exists := func(ctx context.Context, rdb redis.UniversalClient, key string) (int64, error) {
		return rdb.Exists(ctx, key).Result()
	}
	counter := func(ctx context.Context, rdb redis.UniversalClient, key string) (int64, error) {
		n, err := rdb.Get(ctx, key).Int64()
		if errors.Is(err, redis.Nil) {
			return 0, nil
		}
		return n, err
	}
	take := func(ctx context.Context, name string) error {
		d, err := limiter.Take(ctx, name)
		if err == nil && (!d.Allowed || d.Remaining != 999) {
			err = fmt.Errorf("a take: got %+v, want the first permit of a limit", d)
		}
		return err
	}
	window := attempt{key: prefix + ":limit:faults:{NAME}:window-1000-24h", ask: take, count: counter}
	own := attempt{
		key: prefix + ":own:{NAME}", count: counter,
		ask: func(ctx context.Context, name string) error {
			_, err := runner.Run(ctx, increment, []string{prefix + ":own:{" + name + "}"})
			return err
		},
	}
	return []attempt{window, window, window, own, own, {
		key: prefix + ":lock:faults:{NAME}", count: exists, repeats: true,
		ask: func(ctx context.Context, name string) error {
			_, err := locks.Try(ctx, name)
			return err
		},
	}, {
		key: prefix + ":guard:faults:{NAME}", count: exists, repeats: true,
		ask: func(ctx context.Context, name string) error {
			_, err := guard.Begin(ctx, name, "")
			return err
		},
	}, {
		key: prefix + ":inflight:faults:{NAME}:24h", repeats: true,
		ask: func(ctx context.Context, name string) error {
			_, err := slots.Try(ctx, name)
			return err
		},
		count: func(ctx context.Context, rdb redis.UniversalClient, key string) (int64, error) {
			return rdb.ZCard(ctx, key).Result()
		},
	}, {
		key: prefix + ":stock:faults:{NAME}", repeats: true,
		ask: func(ctx context.Context, name string) error {
			if _, err := sale.Open(ctx, name, 10, time.Now().Add(lease)); err != nil {
				return err
			}
			_, err := sale.Reserve(ctx, name, "buyer", "order", nil)
			return err
		},
		count: func(ctx context.Context, rdb redis.UniversalClient, key string) (int64, error) {
			left, err := rdb.HGet(ctx, key, "left").Int64()
			if errors.Is(err, redis.Nil) {
				return 0, nil
			}
			return 10 - left, err
		},
	}}
}

const faultsBudget = 300 * time.Millisecond

// readTimeout is how long a client without ContextTimeoutEnabled waits on a connection
// that has fallen silent.
const readTimeout = 300 * time.Millisecond

// TestFaults has callers of every primitive on one queue. Meanwhile their connections are
// cut at any byte, the server forgets its scripts and stands still, slots move, and
// callers leave. Redis counts how often each call ran: never twice, and always as its
// caller was told.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, cluster := range []bool{false, true} {
		for _, timeouts := range []bool{false, true} {
			t.Run(fmt.Sprintf("cluster=%t/ContextTimeoutEnabled=%t", cluster, timeouts), func(t *testing.T) {
				t.Parallel()
				cutter := redistest.NewCutter(t)
				f := &faults{cutter: cutter, moved: map[int64]bool{}}
				var rdb redis.UniversalClient
				if cluster {
					f.cluster = redistest.NewCluster(t)
					f.servers, f.admin = f.cluster.Nodes(), f.cluster.Admin(t)
					rdb = f.cluster.Client(t, func(o *redis.ClusterOptions) {
						o.Dialer, o.ReadTimeout, o.ContextTimeoutEnabled = cutter.Dial, readTimeout, timeouts
					})
				} else {
					f.servers = []*redistest.Server{redistest.NewStandalone(t)}
					f.admin = f.servers[0].Admin(t)
					rdb = f.servers[0].Client(t, func(o *redis.Options) {
						o.Dialer, o.ReadTimeout, o.ContextTimeoutEnabled = cutter.Dial, readTimeout, timeouts
					})
				}
				callDespite(t, rdb, f)
			})
		}
	}
}

// told is what a caller was told about its call.
type told struct {
	id    int32 // which is its subject, and says what was called
	class class
}

type class byte

const (
	executed class = iota
	notExecuted
	maybeExecuted
	canceled
	unknown
	classes // how many there are
)

func (c class) String() string {
	return [classes]string{"executed", "not executed", "maybe executed", "canceled", "something else"}[c]
}

func classOf(err error) class {
	switch {
	case err == nil:
		return executed
	case errors.Is(err, context.Canceled):
		return canceled
	case errors.Is(err, script.ErrMaybeExecuted):
		return maybeExecuted
	case errors.Is(err, script.ErrNotExecuted):
		return notExecuted
	}
	return unknown
}

// callDespite makes calls while there are faults, and compares the results. It makes as many as are asked for, and more
// until each kind of fault was there and calls have failed in each way.
func callDespite(t *testing.T, rdb redis.UniversalClient, f *faults) {
	t.Helper()
	prefix := redistest.Prefix(t)
	st := storetest.Open(t, rdb, store.Options{Prefix: prefix, Budget: faultsBudget, Queue: store.Queued})
	f.client, f.store = rdb, st
	all := attempts(t, st, prefix)
	redistest.Await(t, 20*time.Second, "a first call", func() bool { return all[0].ask(t.Context(), "first") == nil })
	const callers = 64
	// Of more calls, some runs took half an hour: while connections are cut early, what is in
	// doubt takes most of them.
	calls := min(redistest.Ops(250_000), 100_000)
	if calls < 100_000 { // of make test, where other packages have the processors too
		calls /= 4
	}
	each := max(calls/callers, 1)
	var calling sync.WaitGroup
	var ids atomic.Int64
	results := make([][]told, callers)
	seed := redistest.Seed(t)
	f.began = time.Now()
	for caller := range callers {
		calling.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(caller)))
			for n := 0; n < each || f.runsOn(); n++ {
				f.wait(t, "a call that is sent", func() bool {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if r.IntN(5) == 0 {
						time.AfterFunc(time.Duration(r.IntN(5000))*time.Microsecond, cancel)
					}
					id := ids.Add(1)
					err := all[int(id)%len(all)].ask(ctx, subject(int32(id)))
					class := classOf(err)
					if class == unknown {
						t.Errorf("a call: got %v, want a class of error that faults explain", err)
					}
					results[caller] = append(results[caller], told{int32(id), class})
					f.told[class].Add(1)
					f.ended.Add(1)
					if class == notExecuted {
						return false
					}
					f.sent.Add(1)
					return true
				})
			}
		})
	}
	f.cutter.Cut(1 << 14)
	var injecting sync.WaitGroup
	injecting.Go(func() { f.inject(t, rand.New(rand.NewPCG(seed, callers))) })
	calling.Wait()
	f.over.Store(true)
	injecting.Wait()
	f.cutter.Cut(0)
	f.compare(t, all, results)
	t.Logf("%d connections were cut", f.cutter.Cuts())
}

func subject(id int32) string { return "s" + strconv.Itoa(int(id)) }

// compare compares what callers were told with what Redis has.
func (f *faults) compare(t *testing.T, all []attempt, results [][]told) {
	t.Helper()
	var counts [classes]int
	for _, of := range results {
		for _, one := range of {
			call := &all[int(one.id)%len(all)]
			key := strings.Replace(call.key, "NAME", subject(one.id), 1)
			n, err := call.count(t.Context(), f.admin, key)
			if err != nil {
				t.Fatalf("%s: got %v, want a count", key, err)
			}
			counts[one.class]++
			wrong := n > 1
			switch one.class {
			case executed:
				wrong = n > 1 || n == 0 && !f.moved[f.admin.ClusterKeySlot(t.Context(), key).Val()]
			case notExecuted:
				wrong = n != 0 && !call.repeats
			default:
			}
			if wrong {
				t.Errorf("%s: got %q for the caller and %d runs, want them to agree", key, one.class, n)
			}
		}
	}
	for c, n := range counts {
		t.Logf("%d callers were told: %v", n, class(c))
	}
	if missing := f.missing(); len(missing) > 0 {
		t.Errorf("after %v of faults: got none of %q, want some of each", time.Since(f.began), missing)
	}
}

// faults causes faults meanwhile.
type faults struct {
	cutter  *redistest.Cutter
	servers []*redistest.Server
	admin   redis.UniversalClient
	cluster *redistest.ClusterServer // nil of a server
	moved   map[int64]bool           // slots, whose other keys stayed behind
	client  redis.UniversalClient
	store   *store.Store
	kind    atomic.Int64 // of the last fault

	began  time.Time
	ended  atomic.Int64          // calls
	sent   atomic.Int64          // those of them that were sent
	told   [classes]atomic.Int64 // what their callers were told
	caused atomic.Bool           // each kind of fault was there
	over   atomic.Bool
}

// missing names what must happen and has not happened yet.
func (f *faults) missing() (all []string) {
	for _, c := range []class{executed, notExecuted, maybeExecuted, canceled} {
		if f.told[c].Load() == 0 {
			all = append(all, c.String())
		}
	}
	if f.cutter.Cuts() == 0 {
		all = append(all, "cut connections")
	}
	if !f.caused.Load() {
		all = append(all, "a kind of fault")
	}
	return all
}

// runsOn reports whether a caller makes one more call than was asked for. The faults need time, so it waits a moment.
func (f *faults) runsOn() bool {
	if len(f.missing()) == 0 || time.Since(f.began) > 2*time.Minute {
		return false
	}
	<-time.After(20 * time.Millisecond)
	return true
}

// await waits until calls has grown by more. It reports whether more calls are to come.
func (f *faults) await(t *testing.T, calls *atomic.Int64, more int) bool {
	t.Helper()
	until := calls.Load() + int64(more)
	f.wait(t, "calls to end", func() bool { return f.over.Load() || calls.Load() >= until })
	return !f.over.Load()
}

// wait waits until something holds. While connections are cut early, what is in doubt takes most of them, and a call
// of a caller may have to wait for minutes on a busy machine.
func (f *faults) wait(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s after %v of faults, the last of kind %d, and %d cuts: the breaker is open %t, the pool has %+v",
				what, time.Since(f.began), f.kind.Load(), f.cutter.Cuts(), f.store.BreakerOpen(faultsBudget), f.client.PoolStats())
		}
	}
}

// inject causes faults while calls are made: first each kind once, in some order, and then at random. The first time
// that it pauses a server, it waits until a call is refused: the breaker opens, or there is no connection.
func (f *faults) inject(t *testing.T, r *rand.Rand) {
	t.Helper()
	paused := false
	kinds := r.Perm(8)
	for n := 0; f.await(t, &f.sent, r.IntN(400)); n++ {
		server := f.servers[r.IntN(len(f.servers))]
		kind := r.IntN(len(kinds))
		if n < len(kinds) {
			kind = kinds[n]
		}
		f.kind.Store(int64(kind))
		switch kind {
		case 0:
			if err := server.Admin(t).ScriptFlush(t.Context()).Err(); err != nil {
				t.Errorf("SCRIPT FLUSH: got %v, want no error", err)
			}
		case 1:
			func() {
				server.Pause(t)
				defer server.Resume(t)
				if !paused {
					f.await(t, &f.told[notExecuted], 1)
				}
				paused = true
				f.await(t, &f.ended, r.IntN(200)) // those of the time end with their budget
			}()
		case 2:
			if f.cluster != nil {
				key := fmt.Sprintf("{moved%d}", n)
				f.moved[f.admin.ClusterKeySlot(t.Context(), key).Val()] = true
				f.cluster.MoveSlot(t, key, func() {})
			}
		case 3, 4:
			f.cutter.Cut(0)
			f.await(t, &f.sent, r.IntN(2000)) // calls are sent much faster without faults
		default:
			f.cutter.Cut(1 << (11 + r.IntN(6))) // with less no connection is made
		}
		if n == len(kinds)-1 {
			f.caused.Store(true)
		}
	}
}

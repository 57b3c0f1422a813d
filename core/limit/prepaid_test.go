package limit

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit/internal/prepaid"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// admission is a grant of one permit, and the end of the window in Redis at that time.
type admission struct {
	at     time.Time
	window time.Time // zero if none ran
}

// fleet is several processes that share a prepaid limiter.
type fleet struct {
	policy  Policy
	further []Policy // of the same set
	prepaid Prepaid
	server  *miniredis.Miniredis
	rdb     *redis.Client

	mu       sync.Mutex
	admitted []admission
	crashes  int
	denied   atomic.Bool // somebody was
}

func (f *fleet) process(t *testing.T) *Limiter {
	t.Helper()
	opts := &Options{Budget: time.Minute, Fail: store.FailClosed, Prepaid: f.prepaid}
	return must(New(must(store.Open(f.rdb, nil))(t), "fleet", append([]Policy{f.policy}, f.further...), opts))(t)
}

// crash ends the permits of a process without giving them back.
func (f *fleet) crash(l *Limiter) {
	l.accounts.Drop("s")
	f.crashes++
}

// run has four processes with two callers each ask at random rates and in bursts, and
// crash.
func (f *fleet) run(t *testing.T, rng *rand.Rand, lasts time.Duration) {
	t.Helper()
	end := time.Now().Add(lasts)
	var all sync.WaitGroup
	for range 4 {
		var process atomic.Pointer[Limiter]
		process.Store(f.process(t))
		for range 2 {
			r := rand.New(rand.NewPCG(rng.Uint64(), 0))
			all.Go(func() { f.caller(t, r, &process, end) })
		}
	}
	all.Wait()
}

func (f *fleet) caller(t *testing.T, r *rand.Rand, process *atomic.Pointer[Limiter], end time.Time) {
	t.Helper()
	pause := time.Duration(0)
	for n := 0; time.Now().Before(end); n++ {
		if n%100 == 0 {
			pause = []time.Duration{0, 100 * time.Microsecond, time.Millisecond, 20 * time.Millisecond}[r.IntN(4)]
		}
		l := process.Load()
		if r.IntN(2000) == 0 {
			f.mu.Lock()
			f.crash(l)
			f.mu.Unlock()
			l = f.process(t)
			process.Store(l)
		}
		rest := 10*time.Microsecond + time.Duration(r.Int64N(int64(pause)+1))
		if !f.ask(t, l, r) {
			rest += 2 * time.Millisecond
		}
		time.Sleep(rest)
	}
	if err := process.Load().returnPrepaid(context.Background()); err != nil && !errors.Is(err, ErrRefund) {
		t.Errorf("Drain: got %v, want no error", err)
	}
}

// ask reports whether the caller may soon ask again.
func (f *fleet) ask(t *testing.T, l *Limiter, r *rand.Rand) bool {
	t.Helper()
	d, err := l.Take(context.Background(), "s")
	if err != nil {
		t.Errorf("Take: got %v, want a decision", err)
		return false
	}
	if !d.Allowed {
		f.denied.Store(true)
		return false
	}
	if r.IntN(50) == 0 {
		if err := d.Refund(context.Background()); err == nil {
			return true // it was not granted then
		}
	}
	now := time.Now()
	a := admission{at: now}
	for _, key := range f.server.Keys() {
		if left := f.server.TTL(key); left > 0 && strings.HasSuffix(key, "}:"+tailOf(f.policy)) {
			a.window = now.Add(left).Round(time.Millisecond)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.admitted = append(f.admitted, a)
	return true
}

// tailOf returns the end of a policy's keys.
func tailOf(p Policy) string {
	r, err := p.compile(false)
	if err != nil {
		panic(err)
	}
	return r.Tail
}

// mostInWindow returns the most permits that were granted in one window, and how many
// were granted while there was no window.
func (f *fleet) mostInWindow() (most, none int) {
	n := map[time.Time]int{}
	for _, a := range f.admitted {
		if a.window.IsZero() {
			none++
			continue
		}
		n[a.window]++
		most = max(most, n[a.window])
	}
	return most, none
}

// excess returns by how much more was granted in some time than a bucket grants.
func (f *fleet) excess(b TokenBucket) (most float64) {
	// What is granted from one moment to another may exceed what refills by at most the
	// Burst. So the excess is the largest rise of the difference between the two, less
	// the Burst.
	least := 0.0
	began := f.admitted[0].at
	for i, a := range f.admitted {
		level := float64(i) - float64(b.Rate)*float64(a.at.Sub(began))/float64(b.Per)
		least = min(least, level)
		most = max(most, level+1-least)
	}
	return most - float64(b.Burst)
}

func newFleet(t *testing.T, policy Policy, prepaid Prepaid) *fleet {
	t.Helper()
	m := redistest.Bubble(t)
	return &fleet{policy: policy, prepaid: prepaid, server: m, rdb: redistest.BubbleClient(t, m)}
}

const fleetTerm = 50 * time.Millisecond

// TestPrepaidWindowsAreKept: in no window is more granted than its limit. If anything was
// denied, not much less was granted.
func TestPrepaidWindowsAreKept(t *testing.T) {
	t.Parallel()
	const limit, window = 2000, 200 * time.Millisecond
	for name, policy := range map[string]Policy{
		"fixed":   FixedWindow{Limit: limit, Window: window},
		"sliding": SlidingWindow{Limit: limit, Window: window},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := redistest.Rand(t)
			for range 1 + redistest.Steps(10_000)/1000 {
				synctest.Test(t, func(t *testing.T) {
					f := newFleet(t, policy, Prepaid{Most: 256, Term: fleetTerm})
					f.run(t, rng, time.Second)
					if most, none := f.mostInWindow(); most > limit || none > 0 || f.denied.Load() && most < limit/2 {
						t.Errorf("granted by prepaid permits: got %d in a window and %d in none, want %d to %d and 0", most, none, limit/2, limit)
					}
				})
			}
		})
	}
}

// TestPrepaidSetsAreKept: permits of a set end with the shortest window, and no policy
// grants more than its limit.
func TestPrepaidSetsAreKept(t *testing.T) {
	t.Parallel()
	rng := redistest.Rand(t)
	synctest.Test(t, func(t *testing.T) {
		const limit, longer = 2000, 5000
		f := newFleet(t, FixedWindow{Limit: limit, Window: 200 * time.Millisecond}, Prepaid{Most: 256, Term: fleetTerm})
		f.further = []Policy{FixedWindow{Limit: longer, Window: time.Hour}, TokenBucket{Rate: 20_000, Per: time.Second, Burst: 3000}}
		f.run(t, rng, time.Second)
		if most, none := f.mostInWindow(); most > limit || none > 0 || len(f.admitted) > longer || f.denied.Load() && len(f.admitted) < longer/10 {
			t.Errorf("granted by prepaid permits: got %d in a window, %d in none and %d in all, want %d, 0, and at most %d",
				most, none, len(f.admitted), limit, longer)
		}
	})
}

// TestPrepaidBucketsAreKept: in no time is more granted than a bucket of the full Burst
// grants.
func TestPrepaidBucketsAreKept(t *testing.T) {
	t.Parallel()
	rng := redistest.Rand(t)
	for range 1 + redistest.Steps(10_000)/1000 {
		synctest.Test(t, func(t *testing.T) {
			bucket := TokenBucket{Rate: 5000, Per: time.Second, Burst: 1000}
			f := newFleet(t, bucket, Prepaid{Most: 256, Term: fleetTerm})
			f.run(t, rng, time.Second)
			if over := f.excess(bucket); over > 0 || f.denied.Load() && over < -900 {
				t.Errorf("granted beyond the bucket: got %.1f, want none, and at most 900 too few", over)
			}
		})
	}
}

// TestPrepaidCostsFewCalls. It also checks the figures, and that Reset ends the permits.
func TestPrepaidCostsFewCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, calls := redistest.Counted(t)
		const limit = 100_000
		l := must(New(must(store.Open(rdb, nil))(t), "n", []Policy{FixedWindow{Limit: limit, Window: time.Hour}},
			&Options{Budget: time.Minute, Prepaid: Prepaid{Most: 1000, Term: time.Second}}))(t)
		ctx := t.Context()
		const takes = 10_000
		var last Decision
		var err error
		for range takes {
			if last, err = l.Take(ctx, "s"); err != nil || !last.Allowed {
				t.Fatalf("a take: got %+v, %v, want a permit", last, err)
			}
			time.Sleep(100 * time.Microsecond)
		}
		synctest.Wait()
		if n := calls.Load(); n > takes/100 {
			t.Errorf("calls: got %d for %d decisions, want at most %d", n, takes, takes/100)
		}
		peeked, err := l.Peek(ctx, "s")
		if err != nil || peeked.Remaining > limit-takes || last.Remaining > limit-takes || peeked.Remaining < limit-takes-2000 {
			t.Errorf("permits left: got %d from Take and %d from Peek, %v, want at most %d, and at least 2000 fewer",
				last.Remaining, peeked.Remaining, err, limit-takes)
		}
		if err := last.Refund(ctx); err != nil {
			t.Errorf("Refund: got %v, want no error", err)
		}
		if err := last.Refund(ctx); !errors.Is(err, ErrRefund) {
			t.Errorf("a second Refund: got %v, want ErrRefund", err)
		}
		if err := l.remote.Store.Drain(ctx); err != nil {
			t.Errorf("Drain: got %v, want no error", err)
		}
		if peeked, err = l.Peek(ctx, "s"); err != nil || peeked.Remaining != limit-takes+1 {
			t.Errorf("after Drain: got %d left, %v, want %d", peeked.Remaining, err, limit-takes+1)
		}
		must(l.Reset(ctx, "s"))(t)
		if d, err := l.Take(ctx, "s"); err != nil || d.Remaining < limit-2001 {
			t.Errorf("after Reset: got %d left, %v, want nearly all", d.Remaining, err)
		}
	})
}

// TestABucketIsKeptSmaller by what refills in a Term. Permits are charged from a full
// bucket and held while it refills, and then all are taken at once. That must be no more
// than the Burst.
func TestABucketIsKeptSmaller(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]Policy{
		"a value":   TokenBucket{Rate: 5000, Per: time.Second, Burst: 1000},
		"a pointer": &TokenBucket{Rate: 5000, Per: time.Second, Burst: 1000},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, policy, Prepaid{Most: 256, Term: fleetTerm})
			l := f.process(t)
			take := func() bool { return must(l.Take(t.Context(), "s"))(t).Allowed }
			var held *prepaid.Permits
			for n := 0; held.Left() < 50; n++ {
				if n == 500 {
					t.Fatalf("%s: got fewer than 50 permits that are held, want 50: this test is about them", name)
				}
				take()
				synctest.Wait()
				held = current(l, "s")
			}
			time.Sleep(held.Lasts() - time.Millisecond)
			n := 0
			for take() {
				n++
			}
			if n > 1000+5 { // 5 refill in a millisecond
				t.Errorf("%s: got %d permits at once, want at most 1000", name, n)
			}
			time.Sleep(time.Second)
		})
	}
}

// TestPrepaidSizes: no more than an eighth of what is left is charged at once, and near
// the end each request is charged by itself.
func TestPrepaidSizes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, FixedWindow{Limit: 1000, Window: time.Hour}, Prepaid{Most: 1000, Term: time.Second})
		l := f.process(t)
		n, largest := 0, int64(0)
		for d, err := l.Take(t.Context(), "s"); d.Allowed; d, err = l.Take(t.Context(), "s") {
			if err != nil {
				t.Fatal(err)
			}
			n++
			synctest.Wait()
			one, next := l.accounts.Held("s", l.set)
			for _, p := range []*prepaid.Permits{one, next} {
				if p == nil {
					continue
				}
				largest = max(largest, p.Size())
				if left := 1000 - p.Charge.Taken().Readings[0].N[0]; 7*p.Size() > left {
					t.Fatalf("got %d permits charged at once while %d were left, want an eighth of them", p.Size(), left)
				}
			}
		}
		if n != 1000 || largest < 50 {
			t.Errorf("got %d granted, and at most %d charged at once, want 1000 and at least 50", n, largest)
		}
		time.Sleep(2 * time.Second)
	})
}

// TestResetEndsPermits that were charged before.
func TestResetEndsPermits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, FixedWindow{Limit: 1000, Window: time.Hour}, Prepaid{Most: 1000, Term: time.Second})
		l := f.process(t)
		for range 400 {
			must(l.Take(t.Context(), "s"))(t)
		}
		synctest.Wait()
		for i := 0; i < 100 && current(l, "s").Left() == 0; i++ { // the last request may take the last permit
			must(l.Take(t.Context(), "s"))(t)
			synctest.Wait()
		}
		charged(t, l, "s")
		must(l.Reset(t.Context(), "s"))(t)
		if d, err := l.Take(t.Context(), "s"); err != nil || d.Remaining < 850 {
			t.Errorf("after Reset: got %d left, %v, want 1000 except what is charged ahead", d.Remaining, err)
		}
		other := f.process(t)
		before := must(other.TakeN(t.Context(), "s", 500))(t).Remaining
		time.Sleep(2 * time.Second) // those that were charged before the Reset have ended: nothing comes back
		if d := must(other.Peek(t.Context(), "s"))(t); d.Remaining > before+100 {
			t.Errorf("when the permits have ended: got %d left, want %d, and what was charged ahead after the Reset", d.Remaining, before)
		}
	})
}

// TestWhatCannotBePrepaid is refused with a reason.
func TestWhatCannotBePrepaid(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { rdb.Close() })
	window := FixedWindow{Limit: 10, Window: time.Second}
	for want, c := range map[string]struct {
		prepaid Prepaid
		policy  Policy
	}{
		"Prepaid.Most is 1":              {Prepaid{Most: 1}, window},
		"Prepaid.Most is 0":              {Prepaid{Term: time.Second}, window},
		"Prepaid.Term is 1h0m0s":         {Prepaid{Most: 10, Term: time.Hour}, window},
		"use a SlidingWindow":            {Prepaid{Most: 10}, SlidingLog{Limit: 10, Window: time.Second}},
		"a Shadow cannot be Prepaid":     {Prepaid{Most: 10}, Shadow(window)},
		"the Burst of 10 must be larger": {Prepaid{Most: 10}, TokenBucket{Rate: 100, Per: time.Second, Burst: 10}},
		"the Burst of 11 must be larger": {Prepaid{Most: 10}, &TokenBucket{Rate: 110, Per: time.Second, Burst: 11}},
	} {
		if _, err := New(rdb, "n", []Policy{c.policy}, &Options{Prepaid: c.prepaid}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v of %+v: got %v, want an error with %q", c.prepaid, c.policy, err, want)
		}
	}
}

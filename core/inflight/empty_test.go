package inflight

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestLostSlotsAreTakenAgainFirst deletes the state of a subject while two processes hold
// slots, on each kind of server.
func TestLostSlotsAreTakenAgainFirst(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		const limit = 5
		c, other := strict(t, rdb, prefix, limit, time.Hour), strict(t, rdb, prefix, limit, time.Hour)
		key := c.space.Key("s", c.tail)
		lose := func() { must(admin.Del(t.Context(), key).Result())(t) }
		var mine, theirs []*Slot
		for range 2 {
			mine = append(mine, holds(t, c, "s"))
			theirs = append(theirs, holds(t, other, "s"))
		}
		lose()
		third := holds(t, c, "s") // counts the two of this process too, and knows nothing of the others
		if n := counted(t, c); n != 3 || third.Remaining != limit-3 {
			t.Errorf("after the third try: got %d in flight and %d remaining, want the 3 of this process and %d", n, third.Remaining, limit-3)
		}
		if s := acquire(t, other, "s"); s.Allowed {
			t.Errorf("slot %d of %d: got %+v, want a denial", limit+1, limit, told(s))
		}
		if n := counted(t, c); n != limit {
			t.Errorf("after all were denied: got %d in flight, want %d", n, limit)
		}
		gives(t, mine[0])
		holds(t, other, "s")

		lose() // and others are faster
		rival := strict(t, rdb, prefix, limit, time.Hour)
		for range limit - 1 {
			holds(t, rival, "s")
		}
		if s := acquire(t, c, "s"); s.Allowed {
			t.Error("got a slot while two of its own wait for the one that is free, want a denial")
		}
		if n := counted(t, c); n != limit {
			t.Errorf("after the denial: got %d in flight, want %d", n, limit)
		}
		gives(t, mine[1])
		gives(t, third)
		if n := counted(t, c); n != limit-1 {
			t.Errorf("after the releases: got %d in flight, want only those of the rival, %d: a slot without room was never counted", n, limit-1)
		}
		gives(t, theirs[0])
	})
}

// TestADegradedSlotIsCountedBeforeAnother: a slot that was admitted while Redis was away
// is counted before Redis admits more.
func TestADegradedSlotIsCountedBeforeAnother(t *testing.T) {
	t.Parallel()
	_, client := redistest.Miniredis(t)
	rdb := &redistest.AbsentClient{Processor: client}
	rdb.Gone.Store(true)
	c := must(New(rdb, "c", 2, &Options{Budget: 5 * time.Second, Lease: time.Hour}))(t)
	for range 2 {
		if !holds(t, c, "s").Degraded {
			t.Fatal("a try while Redis is away: got a slot that is not degraded, want it degraded")
		}
	}
	rdb.Gone.Store(false)
	if s := acquire(t, c, "s"); s.Allowed || s.Degraded {
		t.Errorf("a third slot of 2 after Redis is back: got %+v, want a denial by Redis", told(s))
	}
	if n := counted(t, c); n != 2 {
		t.Errorf("after the denial: got %d in flight, want 2", n)
	}
}

// TestManyLostSlots restores more slots than one call can.
func TestManyLostSlots(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	const limit = 2*mostRestored + 500
	c := strict(t, srv.Client(t), srv.Prefix(t), limit, time.Hour)
	var held []*Slot
	for range limit {
		held = append(held, acquire(t, c, "s"))
	}
	must(srv.Admin(t).Del(t.Context(), c.space.Key("s", c.tail)).Result())(t)
	if s := acquire(t, c, "s"); s.Allowed {
		t.Errorf("got one slot more than %d, want a denial", limit)
	}
	if n := counted(t, c); n != limit {
		t.Errorf("after all slots were restored: got %d in flight, want %d", n, limit)
	}
	for _, s := range held {
		gives(t, s)
	}
	if n := counted(t, c); n != 0 || len(c.held.n) != 0 {
		t.Errorf("got %d in flight and %d subjects held when all are released, want none", n, len(c.held.n))
	}
}

// TestAWitnessThatIsReleasedMeanwhile has the release of a slot overtake an acquire that
// names this slot as a witness. Nothing is lost, and it costs no other call. If it was
// the only slot that was held, nothing is asked again either.
func TestAWitnessThatIsReleasedMeanwhile(t *testing.T) {
	t.Parallel()
	_, client := redistest.Miniredis(t)
	for _, others := range []int64{0, 2} {
		rdb := &redistest.HookedClient{Processor: client}
		c := strict(t, rdb, fmt.Sprint("p", others), 5, time.Hour)
		gives(t, holds(t, c, "s")) // has the scripts loaded
		for range others {
			holds(t, c, "s")
		}
		held := holds(t, c, "s")
		var calls atomic.Int64
		var once sync.Once
		overtake := func(cmd redis.Cmder) {
			calls.Add(1)
			if redistest.Write(cmd)[1] == acquireScript.SHA() {
				once.Do(func() { gives(t, held) })
			}
		}
		rdb.Before.Store(&overtake)
		if s := holds(t, c, "s"); s.Remaining != 4-others || calls.Load() != 2 {
			t.Errorf("after a witness was released: got %d remaining, want %d; an acquire and a release made %d calls, want 2",
				s.Remaining, 4-others, calls.Load())
		}
	}
}

// TestNeverMoreThanHeldAfterALoss has goroutines of one process hold slots while the
// state is deleted again and again, as by restarts, but only while no call is on its way.
// The process never admits more than the limit.
func TestNeverMoreThanHeldAfterALoss(t *testing.T) {
	t.Parallel()
	redistest.EachReal(t, func(t *testing.T, connect func() redis.UniversalClient, prefix string) {
		const limit = 5
		rdb := connect()
		c := strict(t, rdb, prefix, limit, time.Minute)
		var held, most, granted, denied atomic.Int64
		done := make(chan struct{})
		var wg sync.WaitGroup
		var down sync.RWMutex
		for range 3 * limit {
			wg.Go(func() {
				for i := range redistest.Ops(3000) {
					down.RLock()
					s, err := c.Try(t.Context(), "s")
					down.RUnlock()
					if err != nil {
						t.Errorf("a try: got %v, want no error", err)
						return
					}
					if !s.Allowed {
						denied.Add(1)
						continue
					}
					granted.Add(1)
					n := held.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); {
						m = most.Load()
					}
					if i%3 == 0 {
						time.Sleep(time.Millisecond) // as a handler takes its time
					}
					held.Add(-1)
					if err := s.Release(t.Context()); err != nil {
						t.Errorf("a release: got %v, want no error", err)
					}
				}
			})
		}
		go func() { wg.Wait(); close(done) }()
		losses := 0
		for running := true; running; losses++ {
			select {
			case <-done:
				running = false
			case <-time.After(5 * time.Millisecond):
				down.Lock()
				err := rdb.Del(t.Context(), c.space.Key("s", c.tail)).Err()
				down.Unlock()
				if err != nil {
					t.Error(err)
					running = false
				}
			}
		}
		<-done
		if most.Load() > limit || denied.Load() == 0 {
			t.Errorf("got %d in flight at once, want at most %d; got %d granted, %d denied (want some), %d losses",
				most.Load(), limit, granted.Load(), denied.Load(), losses)
		}
		redistest.Await(t, 10*time.Second, "the slots to be free", func() bool { return counted(t, c) == 0 })
	})
}

// TestRestoreThatIsNotAnswered loses the reply to the call that restores slots. The slot
// that it granted is given back, and the slots that it restored are held.
func TestRestoreThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	proxy, prefix := srv.Proxy(t), srv.Prefix(t)
	rdb := srv.Client(t, func(o *redis.Options) { o.Dialer = proxy.Dial })
	c := strict(t, rdb, prefix, 3, time.Hour)
	if err := c.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := holds(t, c, "s")
	must(srv.Admin(t).Del(t.Context(), c.space.Key("s", c.tail)).Result())(t)
	hook := &losing{Client: rdb, proxy: proxy}
	c.lease.Decider = ask.NewDecider(storetest.At(t, hook, prefix), 5*time.Second)
	if s, err := c.Try(t.Context(), "s"); err == nil || s != nil {
		t.Fatalf("a try whose reply was lost: got %+v, %v, want no slot and an error", s, err)
	}
	redistest.Await(t, 10*time.Second, "the lost grant to be given back", func() bool { return counted(t, c) == 1 })
	gives(t, first)
	redistest.Await(t, 10*time.Second, "nothing to be in flight", func() bool { return counted(t, c) == 0 })
}

// losing is a client that loses the reply to the first call that restores slots.
type losing struct {
	script.Client
	proxy *redistest.Proxy
	once  sync.Once
}

func (l *losing) Process(ctx context.Context, cmd redis.Cmder) error {
	if args := redistest.Write(cmd); len(args) > 1 && args[1] == restoreScript.SHA() {
		l.once.Do(func() { l.proxy.Lose(redistest.EOF, 1, "evalsha") })
	}
	return l.Client.Process(ctx, cmd)
}

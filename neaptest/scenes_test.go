package neaptest

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

func TestTheClockIsTheBubbles(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		rdb := r.Client()
		began := time.Now()
		rdb.Set(t.Context(), "k", "v", 10*time.Minute)
		time.Sleep(10*time.Minute - time.Millisecond)
		if got := get(t, rdb, "k"); got != "v" {
			t.Errorf("a millisecond before its end: got %q, want v", got)
		}
		time.Sleep(time.Millisecond)
		if got := get(t, rdb, "k"); got != "redis: nil" {
			t.Errorf("at its end: got %q, want nothing", got)
		}
		if got := rdb.Time(t.Context()).Val().Sub(began); got != 10*time.Minute {
			t.Errorf("Redis says that %v have passed, want 10m", got)
		}
	})
}

// TestOutsideOfABubble has calls take the machine's time.
func TestOutsideOfABubble(t *testing.T) {
	t.Parallel()
	r := New(t)
	rdb := r.Client()
	rdb.Set(t.Context(), "k", "v", 0)
	r.Slow(20 * time.Millisecond)
	began := time.Now()
	if got := get(t, rdb, "k"); got != "v" || time.Since(began) < 20*time.Millisecond {
		t.Errorf("got %q after %v, want v after 20ms at least", got, time.Since(began))
	}
	if now := rdb.Time(t.Context()).Val(); now.Sub(began) < 0 || now.Sub(began) > time.Minute {
		t.Errorf("Redis says it is %v, want the time of the machine, %v", now, began)
	}
}

// TestManyCallsAtOnce has more callers than a pipe has room.
func TestManyCallsAtOnce(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		rdb := r.Client()
		l := limiter(t, rdb, 100, store.FailClosed)
		long := strings.Repeat("x", 60_000)
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				if _, err := l.Take(t.Context(), "ann"); err != nil {
					t.Error(err)
				}
				if err := rdb.Set(t.Context(), "long", long, 0).Err(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if d, err := l.Take(t.Context(), "ann"); err != nil || d.Allowed || get(t, rdb, "long") != long {
			t.Errorf("after 200 calls: got %+v, %v, want a denial", d, err)
		}
	})
}

// TestBubblesShareNothing has each bubble make more calls at once than go-redis has connections by default.
func TestBubblesShareNothing(t *testing.T) {
	t.Parallel()
	for range 3 {
		play(t, func(t *testing.T, r *Redis) {
			rdb := r.Client()
			var all sync.WaitGroup
			for range 200 {
				all.Go(func() { rdb.Get(t.Context(), "k") })
			}
			all.Wait()
			if waited := rdb.PoolStats().WaitCount; waited > 0 {
				t.Errorf("%d calls waited for a connection, want none", waited)
			}
		})
	}
}

// TestTheEndWaits loses Redis, and has a goroutine ask it half a minute after the test has returned.
func TestTheEndWaits(t *testing.T) {
	t.Parallel()
	var got string
	play(t, func(t *testing.T, r *Redis) {
		rdb := r.Client()
		rdb.Set(t.Context(), "k", "v", 0)
		r.Lose()
		go func() {
			time.Sleep(30 * time.Second)
			got = get(t, rdb, "k")
		}()
	})
	if got != "v" {
		t.Errorf("got %q, want v", got)
	}
}

func TestLose(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		here, there := r.Client(), r.Client()
		for _, rdb := range []*redis.Client{here, there} {
			rdb.Set(t.Context(), "k", "v", 0)
		}
		r.Lose(here)
		if got := get(t, here, "k"); !strings.Contains(got, "refused") {
			t.Errorf("the client that lost Redis: got %q, want that it is refused", got)
		}
		if got := get(t, there, "k"); got != "v" {
			t.Errorf("the other client: got %q, want v", got)
		}
		r.Lose()
		for name, rdb := range map[string]*redis.Client{"old": there, "new": r.Client()} {
			if got := get(t, rdb, "k"); !strings.Contains(got, "refused") {
				t.Errorf("a %s client, when all lost Redis: got %q, want that it is refused", name, got)
			}
		}
		r.Restore()
		for name, rdb := range map[string]*redis.Client{"old": here, "new": r.Client()} {
			if got := get(t, rdb, "k"); got != "v" {
				t.Errorf("a %s client, when Redis is back: got %q, want v", name, got)
			}
		}
	})
}

// TestLoseAtWork breaks a connection on which a call waits.
func TestLoseAtWork(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		rdb := r.Client()
		l := limiter(t, rdb, 1, store.FailClosed)
		if err := l.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.Slow(10 * time.Millisecond)
		var err error
		var call sync.WaitGroup
		call.Go(func() { _, err = l.Take(t.Context(), "ann") })
		time.Sleep(time.Millisecond)
		r.Lose()
		call.Wait()
		if !errors.Is(err, script.ErrMaybeExecuted) {
			t.Errorf("got %v, want ErrMaybeExecuted", err)
		}
		r.Restore()
		time.Sleep(time.Second)
		if d, err := l.Take(t.Context(), "ann"); err != nil || d.Allowed {
			t.Errorf("afterwards: got %+v, %v, want a denial, since the lost call had run", d, err)
		}
	})
}

func TestSlow(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		slow, quick := r.Client(), r.Client()
		for _, rdb := range []*redis.Client{slow, quick} {
			rdb.Set(t.Context(), "k", "v", 0)
		}
		r.Slow(time.Second, slow)
		for rdb, want := range map[*redis.Client]time.Duration{slow: time.Second, quick: 0} {
			began := time.Now()
			if got := get(t, rdb, "k"); got != "v" || time.Since(began) != want {
				t.Errorf("got %q after %v, want v after %v", got, time.Since(began), want)
			}
		}
		for name, end := range map[string]func(){"Slow(0)": func() { r.Slow(0) }, "Restore": r.Restore} {
			r.Slow(time.Hour)
			began := time.Now()
			var call sync.WaitGroup
			call.Go(func() { get(t, slow, "k") })
			time.Sleep(time.Second)
			end()
			call.Wait()
			if took := time.Since(began); took != time.Second {
				t.Errorf("%s after 1s: the reply came after %v, want it then", name, took)
			}
		}
	})
}

// TestASlowRedisDecides has the process decide by itself, and Redis count the request nonetheless.
func TestASlowRedisDecides(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		l := limiter(t, r.Client(), 3, store.FailLocal)
		if err := l.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.Slow(time.Hour)
		if d, err := l.Take(t.Context(), "ann"); err != nil || !d.Allowed || !d.Degraded {
			t.Errorf("while Redis is slow: got %+v, %v, want it allowed and degraded", d, err)
		}
		r.Restore()
		time.Sleep(time.Second)
		if d, err := l.Take(t.Context(), "ann"); err != nil || d.Degraded || d.Remaining != 1 {
			t.Errorf("afterwards: got %+v, %v, want 1 of 3 remaining in Redis", d, err)
		}
	})
}

func TestLoseReply(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		rdb := r.Client()
		l := limiter(t, rdb, 2, store.FailClosed)
		r.LoseReply("guard")
		r.LoseReply("")
		if _, err := l.Take(t.Context(), "ann"); !errors.Is(err, script.ErrMaybeExecuted) {
			t.Errorf("the reply to any script: got %v, want ErrMaybeExecuted", err)
		}
		if d, err := l.Take(t.Context(), "ann"); err != nil || !d.Allowed || d.Remaining != 0 {
			t.Errorf("the next call: got %+v, %v, want the last permit", d, err)
		}
		// The guard asks again with the same owner, so its caller notices nothing.
		g := guard(t, rdb)
		if run, err := g.Begin(t.Context(), "order-17", ""); err != nil || run.Claim == nil || run.Claim.Attempt() != 1 {
			t.Errorf("a begin whose reply was lost: got %+v, %v, want the claim of the first attempt", run, err)
		}
		if got := r.serve().losing; len(got) != 0 {
			t.Errorf("got %q yet to be lost, want none", got)
		}
		r.LoseReply("")
		r.Restore()
		if d, err := l.Take(t.Context(), "bob"); err != nil || !d.Allowed {
			t.Errorf("after Restore: got %+v, %v, want a permit", d, err)
		}
	})
}

// TestScenesOfAnotherClient has scenes name a client that another Redis has made.
func TestScenesOfAnotherClient(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, other *Redis) {
		rec := &recorder{TB: t}
		r := New(rec)
		r.Pause(other.Client())
		r.Lose(r.Client(), other.Client())
		const want = "want one that Client of this Redis has made"
		rec.says(t, want, want)
	})
}

// TestOrderWhoseReplyIsLost goes the whole way: handler, adapter, gate, guard, client.
func TestOrderWhoseReplyIsLost(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		var work Work
		shop := behind(created(&work), gate.Idempotent(guard(t, r.Client()), gate.Everyone, nil))
		r.LoseReply("guard_begin")
		r.LoseReply("guard_complete")
		AssertRunsOnce(t, &work, order, shop)
		if got := r.serve().losing; len(got) != 0 {
			t.Errorf("got %q yet to be lost, want none", got)
		}
	})
}

// TestAGuardWithoutRedis runs nothing.
func TestAGuardWithoutRedis(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		g := must(idempotency.New(r.Client(), "orders", idempotency.Retry{}, nil))(t)
		r.Lose()
		if _, err := g.Begin(t.Context(), "order-17", ""); !errors.Is(err, script.ErrNotExecuted) {
			t.Errorf("got %v, want ErrNotExecuted", err)
		}
	})
}

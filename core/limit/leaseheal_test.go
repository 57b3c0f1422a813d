package limit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// holderEnv turns the test binary into a process that holds slots until it is
// killed: the server's address and the prefix.
const holderEnv = "NEAP_TEST_HOLDER"

const (
	holderSlots = 3
	holderLease = 1500 * time.Millisecond
)

func holder(where string) {
	addr, prefix, _ := strings.Cut(where, " ")
	c, err := NewConcurrency(redis.NewClient(&redis.Options{Addr: addr, Username: redistest.User, Password: redistest.Password}), "c", holderSlots, &ConcurrencyOptions{
		Prefix: prefix, Budget: 5 * time.Second, Lease: holderLease, Fail: FailClosed,
	})
	if err != nil {
		panic(err)
	}
	for range holderSlots {
		if s, err := c.Acquire(context.Background(), "s"); err != nil || !s.Allowed {
			panic(fmt.Sprint(s, err))
		}
	}
	fmt.Println("held")
	select {}
}

// TestSIGKILLGivesSlotsBack kills a process that holds all slots and has
// renewed them: they are free once its leases have ended, and not before.
func TestSIGKILLGivesSlotsBack(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	rdb, prefix := srv.Admin(t), srv.Prefix(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holderEnv+"="+srv.Addr()+" "+prefix)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the holder says %q, %v", line, err)
	}
	c := strict(t, rdb, prefix, holderSlots, holderLease)
	key := c.space.key("s", c.tail)
	began := serverTime(t, rdb)
	redistest.Await(t, 20*time.Second, "leases to be renewed beyond two of them", func() bool {
		if n := counted(t, c); n != holderSlots {
			t.Fatalf("while they are held, %d are in flight", n)
		}
		return serverTime(t, rdb).Sub(began) > 2*holderLease
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	killed := serverTime(t, rdb)
	var first, last int64
	for _, ends := range stored(t, rdb, key) {
		last = max(last, ends)
		if first == 0 || ends < first {
			first = ends
		}
	}
	if left := last - killed.UnixMicro(); left <= 0 || left > holderLease.Microseconds() {
		t.Fatalf("%d µs are left of the last lease", left)
	}
	redistest.Await(t, 20*time.Second, "a slot", func() bool {
		s := acquire(t, c, "s")
		now := serverTime(t, rdb).UnixMicro()
		if s.Allowed && now < first {
			t.Fatalf("a slot is free %d µs before its lease ends", first-now)
		}
		if s.Allowed {
			t.Cleanup(func() { _ = s.Release(context.Background()) })
		}
		return s.Allowed
	})
	t.Logf("a slot was free %v after the kill", serverTime(t, rdb).Sub(killed))
	redistest.Await(t, 20*time.Second, "the last lease to end", func() bool { return serverTime(t, rdb).UnixMicro() >= last })
	for range holderSlots - 1 {
		holds(t, c, "s")
	}
	if acquire(t, c, "s").Allowed {
		t.Error("more are in flight than may be")
	}
}

// TestSlowHandlerKeepsItsSlot holds one for more than three leases.
func TestSlowHandlerKeepsItsSlot(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		const lease = 1500 * time.Millisecond
		c, rival := strict(t, rdb, prefix, 1, lease), strict(t, rdb, prefix, 1, lease)
		s := holds(t, c, "s")
		began := time.Now()
		redistest.Await(t, 20*time.Second, "more than three leases to pass", func() bool {
			if acquire(t, rival, "s").Allowed || counted(t, rival) != 1 {
				t.Fatalf("the slot is lost after %v", time.Since(began))
			}
			return time.Since(began) > 10*lease/3
		})
		gives(t, s)
		holds(t, rival, "s")
	})
}

// lossy is a client with default options whose replies can be lost.
func lossy(t *testing.T) (rdb *redis.Client, proxy *redistest.Proxy, prefix string) {
	t.Helper()
	srv := redistest.Standalone(t)
	proxy = srv.Proxy(t)
	return srv.Client(t, func(o *redis.Options) { o.Dialer = proxy.Dial }), proxy, srv.Prefix(t)
}

// TestLostAcquireIsUndone loses the reply of a grant: long before its lease
// ends nobody holds it.
func TestLostAcquireIsUndone(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]redistest.Fault{"eof": redistest.EOF, "silence": redistest.Silence} {
		for _, mode := range modes {
			t.Run(name+"/"+mode.String(), func(t *testing.T) {
				t.Parallel()
				rdb, proxy, prefix := lossy(t)
				c, err := NewConcurrency(rdb, "c", 1, &ConcurrencyOptions{Prefix: prefix, Budget: 200 * time.Millisecond, Fail: mode})
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Warm(t.Context()); err != nil {
					t.Fatal(err)
				}
				other := strict(t, redistest.Standalone(t).Client(t), prefix, 1, 0)
				proxy.Lose(fault, 1, "evalsha")
				began := time.Now()
				s, err := c.Acquire(t.Context(), "s")
				took := time.Since(began)
				if took > time.Second || proxy.Lost() != 1 {
					t.Errorf("it was answered after %v, %d replies were lost", took, proxy.Lost())
				}
				if mode == FailClosed && !errors.Is(err, script.ErrMaybeExecuted) ||
					mode != FailClosed && (err != nil || !s.Allowed || !errors.Is(s.Cause, script.ErrMaybeExecuted)) {
					t.Errorf("%+v, %v", s, err)
				}
				_ = s.Release(t.Context()) // of a degraded one nothing is in Redis
				free(t, other, 1500*time.Millisecond)
				redistest.Await(t, 5*time.Second, "the count of it", func() bool {
					return c.Stats().Undone == 1 && c.Stats().Undoing == 0
				})
			})
		}
	}
}

// free awaits that nothing is in flight.
func free(t *testing.T, c *Concurrency, bound time.Duration) {
	t.Helper()
	began := time.Now()
	redistest.Await(t, bound, "the slot to be free", func() bool { return counted(t, c) == 0 })
	t.Logf("free after %v", time.Since(began))
}

// TestAcquireInAStoppedServerIsUndone stops the server with an acquire before
// it, until the caller and the first attempts to undo it have given up.
func TestAcquireInAStoppedServerIsUndone(t *testing.T) {
	t.Parallel()
	for name, canceled := range map[string]bool{"budget": false, "canceled by the caller": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.NewStandalone(t)
			rdb, prefix := srv.Client(t), srv.Prefix(t)
			opts := &ConcurrencyOptions{Prefix: prefix, Budget: 100 * time.Millisecond, Fail: FailClosed}
			ctx, want := t.Context(), script.ErrMaybeExecuted
			if canceled {
				opts.Budget = 5 * time.Second
				short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
				ctx, want = short, context.DeadlineExceeded
			}
			c, err := NewConcurrency(rdb, "c", 1, opts)
			if err != nil {
				t.Fatal(err)
			}
			other := strict(t, srv.Client(t), prefix, 1, 0)
			if err := errors.Join(c.Warm(t.Context()), other.Warm(t.Context())); err != nil {
				t.Fatal(err)
			}
			srv.Pause(t)
			began := time.Now()
			if s, err := c.Acquire(ctx, "s"); s != nil || !errors.Is(err, want) {
				t.Errorf("%+v, %v", s, err)
			}
			redistest.Await(t, 10*time.Second, "half a second", func() bool { return time.Since(began) > 500*time.Millisecond })
			srv.Resume(t)
			redistest.Await(t, 5*time.Second, "the acquire to run", func() bool {
				return redistest.CommandStats(t, srv.Admin(t))["zadd"].Calls == 1
			})
			free(t, other, 5*time.Second)
		})
	}
}

// overtaking is a client whose next acquire is on its way for longer than its
// caller waits: it arrives when the test says so.
type overtaking struct {
	absent
	acquire chan func() error
}

func (d *overtaking) Process(ctx context.Context, cmd redis.Cmder) error {
	if args := cmd.Args(); args[1] == acquireScript.SHA() {
		d.acquire <- func() error {
			return d.Client.Process(context.Background(), redis.NewCmd(context.Background(), args...))
		}
		cmd.SetErr(io.EOF)
		return io.EOF
	}
	return d.absent.Process(ctx, cmd)
}

// TestAcquireThatOvertakesItsUndoIsUndone has a grant arrive behind attempts
// to undo it, and behind an outage longer than its lease: it lives for about a
// second, not for its lease.
func TestAcquireThatOvertakesItsUndoIsUndone(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]time.Duration{"late": 0, "behind an outage": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.Each(t, func(t *testing.T, client, _ redis.UniversalClient, prefix string) {
				const lease = 2500 * time.Millisecond
				rdb := &overtaking{absent{Client: client}, make(chan func() error, 1)}
				c, err := NewConcurrency(rdb, "c", 1, &ConcurrencyOptions{
					Prefix: prefix, Budget: 500 * time.Millisecond, Lease: lease, Fail: FailClosed,
				})
				if err != nil {
					t.Fatal(err)
				}
				other := strict(t, client, prefix, 1, lease)
				if err := other.Warm(t.Context()); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if s, err := c.Acquire(t.Context(), "s"); s != nil || !errors.Is(err, script.ErrMaybeExecuted) {
					t.Errorf("%+v, %v", s, err)
				}
				rdb.gone.Store(outage > 0)
				redistest.Await(t, 10*time.Second, "the first attempts", func() bool { return time.Since(began) > outage+350*time.Millisecond })
				rdb.gone.Store(false)
				if err := (<-rdb.acquire)(); err != nil {
					t.Fatal(err)
				}
				free(t, other, 1500*time.Millisecond)
				redistest.Await(t, 5*time.Second, "the count of it", func() bool { return c.Stats().Undone == 1 && c.Stats().Undoing == 0 })
			})
		})
	}
}

// TestReleaseIsFinishedInTheBackground has Redis not hear of a Release, since
// nothing is sent to it any more: once it answers again the slot is free.
func TestReleaseIsFinishedInTheBackground(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	rdb, prefix := srv.Client(t), srv.Prefix(t)
	c, err := NewConcurrency(rdb, "c", 1, &ConcurrencyOptions{Prefix: prefix, Budget: 50 * time.Millisecond, Fail: FailClosed})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	var s *Slot
	redistest.Await(t, 10*time.Second, "a slot", func() bool {
		s, err = c.Acquire(t.Context(), "s")
		return err == nil && s.Allowed
	})
	srv.Pause(t)
	redistest.Await(t, 10*time.Second, "the breaker to open", func() bool {
		_, _ = c.InFlight(t.Context(), "other")
		return c.Stats().Open
	})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Release(ended); !errors.Is(err, script.ErrNotExecuted) && !errors.Is(err, script.ErrMaybeExecuted) {
		t.Errorf("Release says %v", err)
	}
	if err := s.Release(ended); err != nil {
		t.Errorf("another Release says %v", err)
	}
	if got := c.Stats(); got.InFlight != 0 || got.Undoing != 1 {
		t.Errorf("%+v", got)
	}
	srv.Resume(t)
	free(t, strict(t, srv.Client(t), prefix, 1, 0), 10*time.Second)
	redistest.Await(t, 5*time.Second, "the end of it", func() bool { return c.Stats().Undoing == 0 })
}

// TestReleaseDoesNotEndWithItsContext: a client that went away gives its slot
// back as any other.
func TestReleaseDoesNotEndWithItsContext(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		c := strict(t, rdb, prefix, 1, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		s, err := c.Acquire(ctx, "s")
		if err != nil || !s.Allowed {
			t.Fatalf("%+v, %v", s, err)
		}
		cancel()
		if err := s.Release(ctx); err != nil {
			t.Errorf("%v", err)
		}
		if n := counted(t, c); n != 0 {
			t.Errorf("%d are in flight", n)
		}
	})
}

// TestLostLeaseIsTakenAgain takes a holder's lease away, as when its process
// has slept: it takes a slot again where there is one, and goes on without one
// where there is not.
func TestLostLeaseIsTakenAgain(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		const lease = 1500 * time.Millisecond
		c, rival := strict(t, rdb, prefix, 1, lease), strict(t, rdb, prefix, 1, lease)
		key := c.space.key("s", c.tail)
		s := holds(t, c, "s")
		if err := admin.Del(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
		redistest.Await(t, 10*time.Second, "the slot to be taken again", func() bool { return counted(t, c) == 1 })
		other := taken(t, admin, rival, key)
		began := time.Now()
		redistest.Await(t, 10*time.Second, "two leases to pass", func() bool {
			if n := counted(t, c); n != 1 {
				t.Fatalf("%d are in flight", n)
			}
			return time.Since(began) > 2*lease
		})
		gives(t, other)
		redistest.Await(t, 10*time.Second, "the slot to be taken again", func() bool { return counted(t, c) == 1 })
		gives(t, s)
		free(t, c, 5*time.Second) // what was on its way is given back too
	})
}

// taken takes the only slot from whoever holds it.
func taken(t *testing.T, admin redis.UniversalClient, c *Concurrency, key string) (s *Slot) {
	t.Helper()
	redistest.Await(t, 10*time.Second, "the slot", func() bool {
		if err := admin.Del(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
		s = acquire(t, c, "s")
		return s.Allowed
	})
	return s
}

// TestLocalSlotIsCountedByRedisLater: what was admitted during an outage and
// still runs takes a slot when Redis is back.
func TestLocalSlotIsCountedByRedisLater(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, client, _ redis.UniversalClient, prefix string) {
		rdb := &absent{Client: client}
		rdb.gone.Store(true)
		c, err := NewConcurrency(rdb, "c", 1, &ConcurrencyOptions{Prefix: prefix, Budget: 250 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		s := holds(t, c, "s")
		if !s.Degraded {
			t.Fatalf("%+v", s.Decision)
		}
		rdb.gone.Store(false)
		redistest.Await(t, 10*time.Second, "Redis to count it", func() bool {
			n, err := c.InFlight(t.Context(), "s")
			return err == nil && n == 1
		})
		gives(t, s)
		free(t, strict(t, client, prefix, 1, 0), 5*time.Second)
	})
}

// TestLeasesHealAfterTheClock moves the server's clock back by a day: leases
// that end in the future then end no later than if they had begun now.
func TestLeasesHealAfterTheClock(t *testing.T) {
	t.Parallel()
	m, rdb := newServer(t)
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	m.SetTime(now)
	l := newTestLeases(t, rdb, 2, time.Minute)
	try := func(at time.Time, token string, want int64) {
		t.Helper()
		m.SetTime(at)
		n, denied, err := l.acquire(t.Context(), "{k}", token)
		if denied {
			n = -n
		}
		if err != nil || n != want {
			t.Errorf("%s: %d, %v, not %d", token, n, err, want)
		}
	}
	try(now, "a", 1)
	try(now, "b", 2)
	now = now.Add(-24 * time.Hour)
	try(now, "c", -2)
	try(now.Add(time.Minute-time.Microsecond), "c", -2)
	try(now.Add(time.Minute), "c", 1)
}

// TestLeasesHealTheirTimeToLive removes or lengthens it: the next call mends
// it, granted or denied.
func TestLeasesHealTheirTimeToLive(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		for limit := int64(1); limit <= 2; limit++ { // denied, granted
			c := strict(t, rdb, fmt.Sprint(prefix, limit), limit, time.Minute)
			key := c.space.key("s", c.tail)
			holds(t, c, "s")
			for harm, do := range map[string]func() error{
				"persist":  func() error { return admin.Persist(t.Context(), key).Err() },
				"lengthen": func() error { return admin.PExpire(t.Context(), key, 24*time.Hour).Err() },
			} {
				if err := do(); err != nil {
					t.Fatal(err)
				}
				s := acquire(t, c, "s")
				if ttl := admin.PTTL(t.Context(), key).Val(); s.Allowed != (limit == 2) || ttl <= 0 || ttl > time.Minute+time.Millisecond {
					t.Errorf("%s, limit %d: %+v, and the leases live for %v", harm, limit, s.Decision, ttl)
				}
				gives(t, s)
			}
		}
	})
}

// TestAGrantThatFailsLeavesNothing forbids each command behind the first write
// in turn, and then leaves no memory for the first.
func TestAGrantThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	try := func(user string, left int64) {
		t.Helper()
		rdb := srv.Client(t, func(o *redis.Options) { o.Username, o.Password = user, "pw" })
		c := strict(t, rdb, prefix, 2, time.Minute)
		var failure *script.Error
		if s, err := c.Acquire(t.Context(), "s"); s != nil || !errors.As(err, &failure) {
			t.Errorf("%s: %+v, %v", user, s, err)
		} else if oom := errors.Is(err, script.ErrNotExecuted); oom != (user == "all") {
			t.Errorf("%s: %v", user, err)
		}
		if n := admin.ZCard(t.Context(), c.space.key("s", c.tail)).Val(); n != left {
			t.Errorf("%s: %d slots are left", user, n)
		}
	}
	users := []string{"pexpire", "zremrangebyscore"}
	for _, command := range users {
		if err := admin.Do(t.Context(), "ACL", "SETUSER", command, "on", ">pw", "~*", "+@all", "-"+command).Err(); err != nil {
			t.Fatal(err)
		}
		try(command, 0)
	}
	holds(t, strict(t, srv.Client(t), prefix, 2, time.Minute), "s")
	for _, command := range users {
		try(command, 1)
	}
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "all", "on", ">pw", "~*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	if err := admin.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	try("all", 1)
}

// hooked is a client that calls a function before every command.
type hooked struct {
	script.Client
	before atomic.Pointer[func(redis.Cmder)]
}

func (h *hooked) Process(ctx context.Context, cmd redis.Cmder) error {
	if before := h.before.Load(); before != nil {
		(*before)(cmd)
	}
	return h.Client.Process(ctx, cmd)
}

// TestRenewalEndsWithRelease counts what is sent for a slot that was given back.
func TestRenewalEndsWithRelease(t *testing.T) {
	t.Parallel()
	_, client := newServer(t)
	var calls atomic.Int64
	count := func(redis.Cmder) { calls.Add(1) }
	rdb := &hooked{Client: client}
	rdb.before.Store(&count)
	const lease = 60 * time.Millisecond
	c := strict(t, rdb, "p", 1, lease)
	s := holds(t, c, "s")
	redistest.Await(t, 10*time.Second, "renewals", func() bool { return calls.Load() > 5 })
	gives(t, s)
	sent, began := calls.Load(), time.Now()
	redistest.Await(t, 10*time.Second, "five leases to pass", func() bool { return time.Since(began) > 5*lease })
	if more := calls.Load() - sent; more > 3 { // one may have been on its way, and have taken a slot that it gave back
		t.Errorf("after Release %d calls are sent", more)
	}
}

// TestReleaseBesideALeaseTakenAgain releases while a lost lease is being taken
// again: the new one is given back too.
func TestReleaseBesideALeaseTakenAgain(t *testing.T) {
	t.Parallel()
	_, client := newServer(t)
	rdb := &hooked{Client: client}
	c := strict(t, rdb, "p", 1, 1500*time.Millisecond)
	s := holds(t, c, "s")
	entered, released := make(chan struct{}, 16), make(chan struct{})
	var releases atomic.Int64
	stall := func(cmd redis.Cmder) {
		switch cmd.Args()[1] {
		case acquireScript.SHA():
			entered <- struct{}{}
			<-released
		case releaseScript.SHA():
			releases.Add(1)
		}
	}
	rdb.before.Store(&stall)
	if err := client.Del(t.Context(), c.space.key("s", c.tail)).Err(); err != nil {
		t.Fatal(err)
	}
	<-entered
	gives(t, s)
	close(released)
	redistest.Await(t, 10*time.Second, "the new lease to be given back", func() bool { return releases.Load() == 2 })
	free(t, c, time.Second)
}

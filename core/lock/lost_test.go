package lock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestContextEndsBeforeTheLease cuts a holder off from Redis. When its Context ends, the
// lock has not lapsed in Redis. With one clock this is exact.
func TestContextEndsBeforeTheLease(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"refused", "silent"} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprint(how, plain), func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redistest.CutClient) {
					const ttl, keep = 2 * time.Second, time.Minute
					l, other := locker(t, rdb, "p", &lock.Options{Lease: ttl, FenceRetention: keep, NoRenewal: plain}), locker(t, rdb.Client, "p", nil)
					held := try(t, l)
					if !plain {
						time.Sleep(ttl/2 + time.Millisecond) // a renewal
					}
					rdb.Cut(how)
					<-held.Context().Done()
					left := rdb.Client.PTTL(t.Context(), recordOf("p", "key")).Val() - keep
					_, taken := other.Try(t.Context(), "key")
					if left <= 0 || left > 100*time.Millisecond || !errors.Is(taken, lock.ErrHeld) {
						t.Errorf("got %v left of the lease and %v for another, want up to 100ms and ErrHeld", left, taken)
					}
					if !errors.Is(context.Cause(held.Context()), lock.ErrExpired) || !errors.Is(held.Err(), lock.ErrExpired) {
						t.Errorf("a holder that is cut off: got the cause %v and Err %v, want ErrExpired",
							context.Cause(held.Context()), held.Err())
					}
					if err := held.Release(t.Context()); !errors.Is(err, lock.ErrExpired) {
						t.Errorf("Release by a holder that is cut off: got %v, want ErrExpired", err)
					}
					rdb.Mend()
					time.Sleep(10 * time.Second)
					if got := l.Stats(); got.Granted != 1 || got.Lost != 1 || got.Holding != 0 || got.Undoing != 0 || got.Lapsing != 0 {
						t.Errorf("got stats %+v, want 1 granted, 1 lost, and 0 holding, undoing and lapsing", got)
					}
				})
			})
		}
	}
}

// TestHoldersLearnOfALoss checks when a holder is told that another ended its lock, and
// what it is told.
func TestHoldersLearnOfALoss(t *testing.T) {
	t.Parallel()
	const ttl, budget = 15 * time.Second, 5 * time.Second // told before the lease ends
	type end func(t *testing.T, admin redis.UniversalClient, other *lock.Locker, key string)
	force := func(t *testing.T, _ redis.UniversalClient, other *lock.Locker, _ string) {
		if was, err := other.ForceRelease(t.Context(), "key"); err != nil || !was {
			t.Errorf("ForceRelease: got %v, %v, want true and no error", was, err)
		}
	}
	for name, c := range map[string]struct {
		end   end
		want  error
		sloth time.Duration // the bound, beyond a renewal and the budget
	}{
		"deleted": {func(t *testing.T, admin redis.UniversalClient, _ *lock.Locker, key string) {
			admin.Del(t.Context(), key)
		}, lock.ErrLost, 0},
		"forced": {force, lock.ErrLost, 0},
		"taken over": {func(t *testing.T, admin redis.UniversalClient, other *lock.Locker, key string) {
			force(t, admin, other, key)
			if _, err := other.Try(t.Context(), "key"); err != nil {
				t.Errorf("Try by another locker: got %v, want no error", err)
			}
		}, lock.ErrTakenByOther, 0},
		"deleted and taken over": {func(t *testing.T, admin redis.UniversalClient, other *lock.Locker, key string) {
			admin.Del(t.Context(), key)
			if _, err := other.Try(t.Context(), "key"); err != nil {
				t.Errorf("Try by another locker: got %v, want no error", err)
			}
		}, lock.ErrTakenByOther, 0},
		"lapsed by an operator": {func(t *testing.T, admin redis.UniversalClient, _ *lock.Locker, key string) {
			admin.PExpire(t.Context(), key, time.Minute)
		}, lock.ErrExpired, 0},
		"of another type": {func(t *testing.T, admin redis.UniversalClient, _ *lock.Locker, key string) {
			admin.Set(t.Context(), key, "x", time.Minute)
		}, lock.ErrExpired, ttl},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
				stood := redistest.Witness(t)
				l := locker(t, rdb, prefix, &lock.Options{Lease: ttl, Budget: budget})
				other := locker(t, rdb, prefix, &lock.Options{Lease: time.Minute})
				granted := time.Now()
				held, err := l.Try(t.Context(), "key")
				if err != nil {
					t.Fatal(err)
				}
				second, err := l.Try(t.Context(), "second")
				if err != nil {
					t.Fatal(err)
				}
				ctx := held.Context()
				c.end(t, admin, other, prefix+":lock:test:{key}")
				began := time.Now()
				slow := began.Sub(granted) > ttl/3 // a renewal may have come before the other caller
				told := func(err error) bool {
					return errors.Is(err, c.want) || slow && c.want == lock.ErrTakenByOther && errors.Is(err, lock.ErrLost)
				}
				<-ctx.Done()
				if took, most := time.Since(began), ttl/3+budget+redistest.Grace+c.sloth+4*stood(); took > most {
					t.Errorf("the holder was told after %v, want %v at most", took, most)
				}
				if !told(context.Cause(ctx)) || !told(held.Err()) {
					t.Errorf("the holder was told: got the cause %v and Err %v, want %v",
						context.Cause(ctx), held.Err(), c.want)
				}
				if err := held.Release(t.Context()); !told(err) {
					t.Errorf("Release of a lost lock: got %v, want %v", err, c.want)
				}
				if second.Err() != nil {
					t.Errorf("the lock of another key: got Err %v, want nil", second.Err())
				}
				if err := second.Release(t.Context()); err != nil {
					t.Errorf("the release of another key: got %v, want no error", err)
				}
				if got := l.Stats(); got.Granted != 2 || got.Lost != 1 || got.Holding != 0 {
					t.Errorf("got stats %+v, want 2 granted, 1 lost and 0 holding", got)
				}
				if name == "of another type" {
					if _, err := l.Try(t.Context(), "key"); !errors.Is(err, script.ErrFailed) {
						t.Errorf("Try of a key of another type: got %v, want ErrFailed", err)
					}
					if _, err := l.Inspect(t.Context(), "key"); !errors.Is(err, script.ErrFailed) {
						t.Errorf("Inspect of a key of another type: got %v, want ErrFailed", err)
					}
				}
			})
		})
	}
}

// sleeper holds a lock in a process of its own. It asks for Err again and again on its
// only processor, so that no timer runs before it.
func sleeper(words []string) {
	runtime.GOMAXPROCS(1)
	l, err := lock.New(storetest.Child(words[0], words[1]), "test", &lock.Options{Lease: sleeperTTL, Budget: sleeperTTL / 3, NoRenewal: true})
	if err != nil {
		panic(err)
	}
	if err := l.Warm(context.Background()); err != nil {
		panic(err)
	}
	held, err := l.Acquire(context.Background(), "key")
	if err != nil {
		panic(err)
	}
	over := time.Now().Add(sleeperTTL)
	ctx := held.Context()
	fmt.Println("held")
	for {
		now := time.Now()
		err := held.Err()
		switch {
		case err == nil && now.After(over):
			fmt.Println("wrong: no error when the lease was over for", now.Sub(over))
			return
		case err == nil:
			continue
		case !errors.Is(err, lock.ErrExpired):
			fmt.Println("wrong:", err)
			return
		}
		select {
		case <-ctx.Done():
			fmt.Println("right:", held.Release(context.Background()))
		case <-time.After(10 * time.Second):
			fmt.Println("wrong: the Context does not follow")
		}
		return
	}
}

const sleeperTTL = 6 * time.Second

// TestErrIsRightAfterAPause stops the process of a holder with SIGSTOP for longer than
// its lease.
func TestErrIsRightAfterAPause(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	prefix := srv.Prefix(t)
	other := locker(t, srv.Client(t), prefix, nil)
	for _, takenOver := range []bool{false, true} {
		c := redistest.StartChild(t, "sleeper", srv.Addr(), prefix)
		if line := c.Line(t); line != "held" {
			t.Fatalf("the child: got %q, want \"held\"", line)
		}
		c.Stop(t)
		redistest.Await(t, time.Minute, "the lease to lapse", func() bool {
			state, err := other.Inspect(t.Context(), "key")
			return err == nil && !state.Held
		})
		lapsed := time.Now()
		redistest.Await(t, 10*time.Second, "the lease to be over by the child's clock", func() bool {
			return time.Since(lapsed) > 200*time.Millisecond
		})
		want := "right: lock: the lease is over"
		var held *lock.Lock
		if takenOver {
			var err error
			if held, err = other.Try(t.Context(), "key"); err != nil {
				t.Fatal(err)
			}
			want = "right: lock: taken by another"
		}
		c.Resume()
		if line := c.Line(t); line != want {
			t.Errorf("the child after its pause: got %q, want %q", line, want)
		}
		if held != nil {
			if err := held.Release(t.Context()); err != nil {
				t.Errorf("the release by the next holder: got %v, want no error", err)
			}
		}
	}
}

// TestFullServer uses a server without free memory. It grants no lock, and keeps nothing
// for a lock that it did not grant.
func TestFullServer(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t, "--maxmemory", "1gb", "--maxmemory-policy", "noeviction")
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	l := locker(t, srv.Client(t), prefix, &lock.Options{Lease: 9 * time.Second, Budget: 3 * time.Second})
	other := locker(t, srv.Client(t), prefix, nil)
	try := func(key string) *lock.Lock {
		t.Helper()
		held, err := l.Try(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return held
	}
	renewed, released, forced := try("renewed"), try("released"), try("forced")
	setMemory := func(most string) {
		if err := admin.ConfigSet(t.Context(), "maxmemory", most).Err(); err != nil {
			t.Fatal(err)
		}
	}
	setMemory("1")
	began := time.Now()
	for _, key := range []string{"fresh", "released"} {
		want := script.ErrNotExecuted
		if key == "released" {
			want = lock.ErrHeld
		}
		if _, err := other.Try(t.Context(), key); !errors.Is(err, want) {
			t.Errorf("Try of %s on a full server: got %v, want %v", key, err, want)
		}
	}
	if state, err := other.Inspect(t.Context(), "fresh"); err != nil || state != (lock.State{}) {
		t.Errorf("Inspect on a full server: got %+v, %v, want no record", state, err)
	}
	if err := released.Release(t.Context()); err != nil {
		t.Errorf("Release on a full server: got %v, want no error", err)
	}
	if _, err := other.Try(t.Context(), "released"); !errors.Is(err, script.ErrNotExecuted) {
		t.Errorf("Try of a free record on a full server: got %v, want ErrNotExecuted", err)
	}
	if was, err := other.ForceRelease(t.Context(), "forced"); err != nil || !was {
		t.Errorf("ForceRelease on a full server: got %v, %v, want true and no error", was, err)
	}
	if err := forced.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release of what was forced: got %v, want ErrLost", err)
	}
	if err := renewed.Extend(t.Context(), 9*time.Second); err != nil {
		t.Errorf("Extend on a full server: got %v, want no error", err)
	}
	if err := renewed.Extend(t.Context(), time.Minute); !errors.Is(err, script.ErrNotExecuted) {
		t.Errorf("Extend to longer than ever: got %v, want ErrNotExecuted", err)
	}
	redistest.Await(t, time.Minute, "longer than a lease", func() bool { return time.Since(began) > 12*time.Second })
	if state, err := other.Inspect(t.Context(), "renewed"); renewed.Err() != nil || err != nil || !state.Held {
		t.Errorf("a lock on a full server: got Err %v, %+v, %v, want it renewed and held", renewed.Err(), state, err)
	}
	setMemory("1gb")
	for _, key := range []string{"fresh", "released", "forced"} {
		if _, err := other.Try(t.Context(), key); err != nil {
			t.Errorf("Try of %s with memory again: got %v, want no error", key, err)
		}
	}
	if err := admin.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	<-renewed.Context().Done()
	if !errors.Is(renewed.Err(), lock.ErrLost) {
		t.Errorf("after FLUSHALL: got Err %v, want ErrLost", renewed.Err())
	}
	if err := renewed.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release after FLUSHALL: got %v, want ErrLost", err)
	}
}

package guide

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

func TestALockForEver(t *testing.T) {
	t.Parallel()
	pitfall[string]{
		asks: "what Bob is told a day after Alice died between her two commands",
		usual: func(s scene) string {
			ctx, die := context.WithCancel(s.Context())
			s.rdb.AddHook(&death{behind: "set", die: die})
			_, _ = LockByExpire(ctx, s.rdb, s.key) // Alice died between her two commands
			s.pass(24 * time.Hour)
			return verdict(LockByExpire(s.Context(), s.rdb, s.key))
		},
		breaks: "denied",
		neap: func(s scene) string {
			alice := s.locker(s.rdb)
			s.must(alice.Warm(s.Context()))
			ctx, die := context.WithCancel(s.Context())
			s.rdb.AddHook(&death{behind: "evalsha", die: die})
			_, _ = alice.Try(ctx, "order-17")
			s.pass(24 * time.Hour)
			return try(s, s.locker(s.rdb))
		},
		holds: "admitted",
	}.run(t)
}

func TestUnlockWithoutCompare(t *testing.T) {
	t.Parallel()
	const slow = 31 * time.Second // the lease lasts 30
	pitfall[string]{
		asks: "what Carol is told while Bob has the lock, after Alice was slow and has released hers",
		usual: func(s scene) string {
			_, err := LockBySet(s.Context(), s.rdb, s.key, "alice")
			s.must(err)
			s.pass(slow)
			_, err = LockBySet(s.Context(), s.rdb, s.key, "bob")
			s.must(err)
			s.must(UnlockByDel(s.Context(), s.rdb, s.key))
			return verdict(LockBySet(s.Context(), s.rdb, s.key, "carol"))
		},
		breaks: "admitted",
		neap: func(s scene) string {
			alice, err := s.locker(s.rdb).Try(s.Context(), "order-17")
			s.must(err)
			s.pass(slow)
			bob, err := s.locker(s.rdb).Try(s.Context(), "order-17")
			s.must(err)
			defer bob.Release(s.Context())
			if err := alice.Release(s.Context()); err == nil {
				s.Error("Release by Alice: got no error, want one, since the lock was lost")
			}
			return try(s, s.locker(s.rdb))
		},
		holds: "denied",
	}.run(t)
}

func TestALostReplyDoublesAHold(t *testing.T) {
	t.Parallel()
	pitfall[string]{
		asks: "what Bob is told after Alice has entered once and left once, and go-redis has lost one reply",
		usual: func(s scene) string {
			rdb, lose := s.lossy(redistest.Standalone(s.T).Admin)
			s.must(enter.Load(s.Context(), rdb).Err())
			lose("evalsha")
			s.must(enter.Run(s.Context(), rdb, []string{s.key}, "alice", 30_000).Err())
			s.must(leave.Run(s.Context(), rdb, []string{s.key}, "alice").Err())
			return verdict(enter.Run(s.Context(), s.rdb, []string{s.key}, "bob", 30_000).Bool())
		},
		breaks: "denied",
		neap: func(s scene) string {
			alice, lose := s.lossyLocker()
			lose("evalsha")
			held, err := alice.Try(s.Context(), "order-17")
			s.must(err)
			s.must(held.Release(s.Context()))
			return try(s, s.locker(s.rdb))
		},
		holds: "admitted",
	}.run(t, redistest.OnStandalone)
}

func TestALostReplyOfSetNX(t *testing.T) {
	t.Parallel()
	pitfall[string]{
		asks: "what Alice is told after Redis has given her the lock and go-redis has lost the reply",
		usual: func(s scene) string {
			rdb, lose := s.lossy(redistest.Standalone(s.T).Admin)
			lose("set")
			return verdict(LockBySet(s.Context(), rdb, s.key, "alice"))
		},
		breaks: "denied",
		neap: func(s scene) string {
			alice, lose := s.lossyLocker()
			lose("evalsha")
			return try(s, alice)
		},
		holds: "admitted",
	}.run(t, redistest.OnStandalone)
}

// row is an order's row in a database. It refuses a fence that is smaller than the
// last one, as `UPDATE … WHERE fence <= $1` does.
type row struct {
	by    string
	fence int64
}

func (r *row) write(by string, fence int64) {
	if fence >= r.fence {
		r.by, r.fence = by, fence
	}
}

func TestTheLateWrite(t *testing.T) {
	t.Parallel()
	pitfall[string]{
		asks: "whose write is in the database after Alice slept with the lock and Bob had it meanwhile",
		usual: func(s scene) string {
			var order row
			alice, err := LockBySet(s.Context(), s.rdb, s.key, "alice")
			s.must(err)
			s.pass(31 * time.Second)
			bob, err := LockBySet(s.Context(), s.rdb, s.key, "bob")
			s.must(err)
			if alice && bob {
				order.write("bob", 0) // a random token is neither larger nor smaller
				order.write("alice", 0)
			}
			return order.by
		},
		breaks: "alice",
		neap: func(s scene) string {
			var order row
			alice, err := s.locker(s.rdb).Try(s.Context(), "order-17")
			s.must(err)
			defer alice.Release(s.Context())
			s.pass(31 * time.Second)
			bob, err := s.locker(s.rdb).Try(s.Context(), "order-17")
			s.must(err)
			defer bob.Release(s.Context())
			order.write("bob", bob.Fence())
			order.write("alice", alice.Fence())
			return order.by
		},
		holds: "bob",
	}.run(t)
}

func TestShip(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, key string) {
		s := scene{t, rdb, admin, key}
		var order row
		for _, by := range []string{"alice", "bob"} {
			s.must(Ship(s.Context(), s.locker(rdb), "order-17", func(_ context.Context, fence int64) error {
				last := order.fence
				order.write(by, fence)
				if got := try(s, s.locker(rdb)); got != "denied" || fence <= last {
					t.Errorf("a second caller while %s has the lock: got %s, and the fence %d after %d, "+
						"want denied, and a fence that grows", by, got, fence, last)
				}
				return nil
			}))
		}
		if order.by != "bob" {
			t.Errorf("the last writer of the order: got %q, want bob", order.by)
		}
	})
}

func TestWhatWaitingCosts(t *testing.T) {
	t.Parallel()
	pitfall[bool]{
		asks: "whether twenty callers that wait for half a second send more than a hundred commands",
		usual: func(s scene) bool {
			_, err := LockBySet(s.Context(), s.rdb, s.key, "alice")
			s.must(err)
			for range 20 { // a busy machine may need a second attempt
				if s.asked("set", func(ctx context.Context) {
					_ = LockBySpinning(ctx, s.rdb, s.key, "bob")
				}) > 100 {
					return true
				}
			}
			return false
		},
		breaks: true,
		neap: func(s scene) bool {
			alice, err := s.locker(s.rdb).Try(s.Context(), "order-17")
			s.must(err)
			defer alice.Release(s.Context())
			bobs := s.locker(s.rdb)
			return s.asked("evalsha", func(ctx context.Context) {
				_, _ = bobs.Acquire(ctx, "order-17")
			}) > 100
		},
		holds: false,
	}.alone(t)
}

// asked lets twenty callers wait for half a second, and returns how many commands
// they sent.
func (s scene) asked(command string, wait func(ctx context.Context)) int64 {
	s.Helper()
	before := redistest.CommandStats(s.T, s.admin)[command].Calls
	ctx, cancel := context.WithTimeout(s.Context(), 500*time.Millisecond)
	defer cancel()
	var waiters sync.WaitGroup
	for range 20 {
		waiters.Go(func() { wait(ctx) })
	}
	waiters.Wait()
	return redistest.CommandStats(s.T, s.admin)[command].Calls - before
}

// locker makes a locker, as each process has one.
func (s scene) locker(rdb redis.UniversalClient) *lock.Locker {
	s.Helper()
	locker, err := lock.New(storetest.At(s, rdb, s.key), "guide", &lock.Options{Budget: patience})
	s.must(err)
	return locker
}

// lossyLocker makes a locker. After a call of lose the next reply to it is lost.
func (s scene) lossyLocker() (locker *lock.Locker, lose func(command string)) {
	s.Helper()
	rdb, lose := s.lossy(redistest.Standalone(s.T).Client)
	locker = s.locker(rdb)
	s.must(locker.Warm(s.Context()))
	return locker, lose
}

// try says in a word what a caller is told that asks for the lock of order 17.
func try(s scene, locker *lock.Locker) string {
	held, err := locker.Try(s.Context(), "order-17")
	if err == nil {
		defer held.Release(s.Context())
	}
	return verdict(err == nil, unless(err, lock.ErrHeld))
}

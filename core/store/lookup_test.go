package store_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// badHash is the hash of a Ring. It does not return while it is armed.
type badHash struct {
	armed *atomic.Bool
	met   *atomic.Int64
	leave func()
}

func (h badHash) Get(string) string {
	if h.armed.Load() {
		h.met.Add(1)
		h.leave()
	}
	return "one"
}

// TestAClientThatDoesNotReturnWhileAServerIsLookedUp ends no lease, and a panic ends no call:
// the client is asked for the server of a key by each call, and by what renews leases.
func TestAClientThatDoesNotReturnWhileAServerIsLookedUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode  store.QueueMode
		leave func()
	}{
		"Direct/Panic":  {store.Direct, func() { panic(errHook) }},
		"Queued/Panic":  {store.Queued, func() { panic(errHook) }},
		"Direct/Goexit": {store.Direct, runtime.Goexit},
		"Queued/Goexit": {store.Queued, runtime.Goexit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.NewStandalone(t)
			h := badHash{new(atomic.Bool), new(atomic.Int64), c.leave}
			rdb := redis.NewRing(&redis.RingOptions{
				Addrs: map[string]string{"one": srv.Addr()}, Username: redistest.User, Password: redistest.Password,
				NewConsistentHash: func([]string) redis.ConsistentHash { return h }, HeartbeatFrequency: time.Hour,
			})
			t.Cleanup(func() { _ = rdb.Close() })
			st := storetest.Open(t, rdb, store.Options{Prefix: srv.Prefix(t), Queue: c.mode})
			slots, err := inflight.New(st, "slots", 1, &inflight.Options{Lease: 15 * time.Second, Budget: 5 * time.Second, Fail: store.FailClosed})
			if err != nil {
				t.Fatal(err)
			}
			slot, err := slots.Try(t.Context(), "s")
			if err != nil || !slot.Allowed {
				t.Fatalf("a first slot: got %v, %v, want it", slot, err)
			}
			h.armed.Store(true)
			redistest.Await(t, time.Minute, "a renewal to look the server up", func() bool { return h.met.Load() > 0 })
			another := make(chan error, 1)
			go func() {
				err := errHook
				defer func() { another <- err }()
				_, err = slots.Try(t.Context(), "another")
			}()
			if err := <-another; err == nil {
				t.Error("a slot while the client does not return: got no error, want one")
			}
			end := func() (at float64) {
				for _, key := range srv.Admin(t).Keys(t.Context(), "*").Val() {
					for _, z := range srv.Admin(t).ZRangeWithScores(t.Context(), key, 0, -1).Val() {
						at = max(at, z.Score)
					}
				}
				return at
			}
			before := end()
			if before == 0 {
				t.Fatal("got no slot in Redis, want one")
			}
			h.armed.Store(false)
			redistest.Await(t, time.Minute, "the slot to be renewed", func() bool { return end() > before })
			if err := slot.Release(t.Context()); err != nil {
				t.Errorf("giving the slot back: got %v, want none", err)
			}
		})
	}
}

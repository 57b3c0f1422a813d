package store_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// badHash is the hash of a Ring. It panics while it is armed.
type badHash struct {
	armed *atomic.Bool
	met   *atomic.Int64
}

func (h badHash) Get(string) string {
	if h.armed.Load() {
		h.met.Add(1)
		panic(errHook)
	}
	return "one"
}

// TestAClientThatPanicsWhileAServerIsLookedUp ends no call, and no lease: the client is asked
// for the server of a key by each call, and by what renews leases.
func TestAClientThatPanicsWhileAServerIsLookedUp(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]store.QueueMode{"Direct": store.Direct, "Queued": store.Queued} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.NewStandalone(t)
			h := badHash{new(atomic.Bool), new(atomic.Int64)}
			rdb := redis.NewRing(&redis.RingOptions{
				Addrs: map[string]string{"one": srv.Addr()}, Username: redistest.User, Password: redistest.Password,
				NewConsistentHash: func([]string) redis.ConsistentHash { return h }, HeartbeatFrequency: time.Hour,
			})
			t.Cleanup(func() { _ = rdb.Close() })
			st := storetest.Open(t, rdb, store.Options{Prefix: srv.Prefix(t), Queue: mode})
			slots, err := limit.NewConcurrency(st, "slots", 1, &limit.ConcurrencyOptions{Lease: 15 * time.Second, Budget: 5 * time.Second, Fail: limit.FailClosed})
			if err != nil {
				t.Fatal(err)
			}
			slot, err := slots.Try(t.Context(), "s")
			if err != nil || !slot.Allowed {
				t.Fatalf("a first slot: got %v, %v, want it", slot.Decision, err)
			}
			h.armed.Store(true)
			redistest.Await(t, time.Minute, "a renewal to look the server up", func() bool { return h.met.Load() > 0 })
			if _, err := slots.Try(t.Context(), "another"); err == nil {
				t.Error("a slot while the client panics: got no error, want one")
			}
			h.armed.Store(false)
			redistest.Await(t, time.Minute, "the slot to be renewed and given back", func() bool {
				n, err := slots.InFlight(t.Context(), "s")
				return err == nil && n == 1 && slot.Release(t.Context()) == nil
			})
		})
	}
}

package store_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestOneStoreAClient: a client that is recognized by its pointer has one store. Another
// client has another store, and Open makes another.
func TestOneStoreAClient(t *testing.T) {
	t.Parallel()
	one, other := unused(t), unused(t)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	t.Cleanup(func() { cluster.Close() })
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	t.Cleanup(func() { ring.Close() })
	pipeliner, err := one.AutoPipeline()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pipeliner.Close() })
	seen := map[*store.Store]script.Client{}
	for _, rdb := range []script.Client{one, other, cluster, ring, pipeliner} {
		first, again := of(t, rdb), of(t, rdb)
		if first != again {
			t.Errorf("a %T: got two stores, want one", rdb)
		}
		if of(t, first) != first {
			t.Errorf("the store of the store of a %T: got another one, want itself", rdb)
		}
		if before, ok := seen[first]; ok {
			t.Errorf("a %T and a %T: got one store, want two", before, rdb)
		}
		seen[first] = rdb
		if first.Client() != rdb {
			t.Errorf("the store of a %T: got another client, want that one", rdb)
		}
	}
	if mine := storetest.At(t, one, "mine"); mine == of(t, one) || mine == storetest.At(t, one, "mine") {
		t.Error("Open: got a store that was there, want a new one")
	}
	wrapped := struct{ *redis.Client }{one}
	if first := of(t, wrapped); first == of(t, wrapped) {
		t.Error("a client of the user's own kind: got one store twice, want two stores")
	}
}

func of(t *testing.T, rdb script.Client) *store.Store {
	t.Helper()
	st, err := store.Of(rdb)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// TestEveryClientHasAStore, including clients without an address.
func TestEveryClientHasAStore(t *testing.T) {
	t.Parallel()
	failover := redis.NewFailoverClusterClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}})
	t.Cleanup(func() { failover.Close() })
	slots := redis.NewClusterClient(&redis.ClusterOptions{ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
		return nil, errors.New("there is no cluster")
	}})
	t.Cleanup(func() { slots.Close() })
	sentinel := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}})
	t.Cleanup(func() { sentinel.Close() })
	for _, rdb := range []script.Client{failover, slots, sentinel} {
		of(t, rdb)
	}
}

// TestAnObserverKeepsItsStore: whatever is made later on the client has the observer, even
// if the function that removes it was dropped.
func TestAnObserverKeepsItsStore(t *testing.T) {
	t.Parallel()
	rdb := unused(t)
	events := 0
	_ = of(t, rdb).Observe(func(context.Context, store.Event) { events++ })
	runtime.GC()
	of(t, rdb).Notify(t.Context(), store.Event{})
	if events != 1 {
		t.Errorf("an event after a collection: got %d observed, want 1", events)
	}
}

// TestNobodyKeepsAClientAlive: the registry of stores keeps neither the client nor the
// store alive.
func TestNobodyKeepsAClientAlive(t *testing.T) {
	t.Parallel()
	gone := make(chan string, 2)
	var key any
	func() {
		rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		key = weak.Make(rdb)
		st := of(t, rdb)
		st.Observe(func(context.Context, store.Event) {})() // removed again
		runtime.AddCleanup(rdb, func(what string) { gone <- what }, "the client")
		runtime.AddCleanup(st, func(what string) { gone <- what }, "the store")
		_ = rdb.Close()
		if !store.IsKnown(key) {
			t.Error("the registry: got no entry of a client, want one: this test is about it")
		}
		runtime.KeepAlive(st)
	}()
	left := map[string]bool{"the client": true, "the store": true}
	redistest.Await(t, 20*time.Second, "the client and its store to be collected, and their entry to go", func() bool {
		runtime.GC()
		select {
		case what := <-gone:
			delete(left, what)
		default:
		}
		return len(left) == 0 && !store.IsKnown(key)
	})
}

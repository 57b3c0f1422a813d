package gatefake

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// Redis starts a miniredis that ends with the test. Its client is unhurried and
// connected, so that a busy machine does not use up a default budget. It is a store with
// a long budget, because a call after a slow one waits in the store's queue.
func Redis(t testing.TB) script.Client {
	t.Helper()
	m := miniredis.RunT(t)
	m.ClockTTL(true)
	rdb := redistest.Unhurried(&redis.Options{Addr: m.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	if err := rdb.Ping(t.Context()).Err(); err != nil { // a connection is there when a budget begins
		t.Fatal(err)
	}
	st, err := store.Open(rdb, &store.Options{Budget: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

package script_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// TestShortCallsKeepTheConnection: otherwise each would cost the others a new one. Nor does
// a call whose caller has left wait for a connection, ahead of the calls of others.
func TestShortCallsKeepTheConnection(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	var dials atomic.Int64
	rdb := srv.Client(t, func(o *redis.Options) {
		o.ContextTimeoutEnabled, o.PoolSize, o.PoolTimeout = true, 1, time.Hour
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	})
	r := newRunner(t, rdb, &script.Options{Budget: time.Minute})
	key := srv.Prefix(t)
	if _, err := r.Run(t.Context(), count, []string{key}, 1); err != nil {
		t.Fatal(err)
	}
	before := dials.Load()
	srv.Pause(t)
	for i := range 10 {
		patience := 5 * time.Millisecond
		if i == 0 {
			patience = time.Second // its command is written
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if _, err := r.Run(ctx, count, []string{key}, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a short call to a stopped server: got %v, want DeadlineExceeded", err)
		}
		cancel()
	}
	redistest.Await(t, 30*time.Second, "the calls whose callers left", func() bool { return rdb.PoolStats().PendingRequests == 0 })
	srv.Resume(t)
	if n, err := r.Run(t.Context(), count, []string{key}, 0); err != nil || n != int64(2) {
		t.Errorf("after the short calls: got %v, %v, want the first and one that was written", n, err)
	}
	if now := dials.Load(); now != before {
		t.Errorf("got %d new connections, want none", now-before)
	}
}

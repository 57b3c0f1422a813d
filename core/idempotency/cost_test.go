package idempotency_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

// digest is as long as a request's SHA-256 in hex.
var digest = strings.Repeat("0123456789abcdef", 4)

// A run costs two round trips, and a replay one.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	admin := srv.Admin(t)
	g := guard(t, srv.Client(t), srv.Prefix(t), &idempotency.Options{EncryptionKeys: []idempotency.EncryptionKey{newer}, Lease: time.Hour}) // nothing is renewed
	if err := g.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	const n = 50
	run := func(context.Context) ([]byte, error) { return []byte("result"), nil }
	for _, c := range []struct {
		name  string
		trips int64
		call  func(key string)
	}{
		{"Begin and Complete", 2, func(key string) { complete(t, g, key, "result") }},
		{"Begin of what is done", 1, func(key string) { replayed(t, g, key, "", "result") }},
		{"Begin of what is in flight", 2, func(key string) {
			begin(t, g, "flight "+key, digest)
			refused(t, g, "flight "+key, digest, idempotency.ErrInFlight)
		}},
		{"Begin of something else", 1, func(key string) { refused(t, g, "flight "+key, "", idempotency.ErrMismatch) }},
		{"Await of what is done", 1, func(key string) {
			if run, err := g.Await(t.Context(), key, ""); run.Claim != nil || err != nil {
				t.Fatalf("Await of what is done: got %+v, %v, want its result", run, err)
			}
		}},
		{"Do", 2, func(key string) {
			if _, err := g.Do(t.Context(), "Do "+key, run); err != nil {
				t.Fatal(err)
			}
		}},
		{"Do of what is done", 1, func(key string) {
			if _, err := g.Do(t.Context(), "Do "+key, run); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		redistest.ResetStats(t, admin)
		for i := range n {
			c.call(fmt.Sprint("key", i))
		}
		stats := redistest.CommandStats(t, admin)
		if got := stats["evalsha"].Calls; got != n*c.trips || stats["eval"].Calls+stats["script|load"].Calls != 0 {
			t.Errorf("%s: got %d calls for %d keys, want %d and no scripts sent: %v", c.name, got, n, n*c.trips, stats)
		}
	}
}

// A response of 1 KB takes at most 1.4 KB of the server's memory, including its key,
// owner and fingerprint.
func TestMemoryOfAResult(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	const size, most = 1024, 1024 * 14 / 10
	for name, keys := range map[string][]idempotency.EncryptionKey{"plain": nil, "sealed": {newer}} {
		for _, key := range []string{"0198c2f5-7d1c-7c7e-9d0a-3f1b2c4d5e6f", strings.Repeat("a long key ", 20)} {
			g := guard(t, srv.Client(t), prefix, &idempotency.Options{EncryptionKeys: keys})
			if err := begin(t, g, name+key, digest).Conclude(t.Context(), idempotency.DoneWith(make([]byte, size))); err != nil {
				t.Fatal(err)
			}
			records, err := admin.Keys(t.Context(), prefix+":*").Result()
			if err != nil || len(records) != 1 {
				t.Fatalf("got the records %q, %v, want one", records, err)
			}
			took, err := admin.MemoryUsage(t.Context(), records[0]).Result()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, a key of %d bytes: %d bytes", name, len(key), took)
			if took > most || took < size {
				t.Errorf("%s: a result of %d bytes takes %d, want %d to %d", name, size, took, size, most)
			}
			if _, err := g.Forget(t.Context(), name+key); err != nil {
				t.Fatal(err)
			}
		}
	}
}

package callback_test

import (
	"testing"
	"time"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// A delivery costs two round trips if it is handled, one if it was handled before, and
// two more for the lock of its order.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	admin, rdb, prefix := srv.Admin(t), srv.Client(t), srv.Prefix(t)
	g := guard(t, rdb, prefix, idempotency.Options{})
	locker, err := lock.New(storetest.At(t, rdb, prefix), "orders", &lock.Options{Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for _, warm := range []error{g.Warm(t.Context()), locker.Warm(t.Context())} {
		if warm != nil {
			t.Fatal(warm)
		}
	}
	s, p := &shop{}, callback.Alipay()
	alone := endpoint(t, p, g, s, callback.Options{})
	serialized := endpoint(t, p, g, s, callback.Options{Serialize: locker})
	for _, c := range []struct {
		name  string
		trips int64
		call  func() response
	}{
		{"handled", 2, func() response { return deliver(alone, alipayForm) }},
		{"handled before", 1, func() response { return deliver(alone, alipayForm) }},
		{"serialized", 4, func() response { return deliver(serialized, providers()["Alipay"].another) }},
		{"serialized, handled before", 1, func() response { return deliver(serialized, alipayForm) }},
	} {
		redistest.ResetStats(t, admin)
		c.call().is(t, p.Done)
		stats := redistest.CommandStats(t, admin)
		if n := stats["evalsha"].Calls + stats["eval"].Calls; n != c.trips {
			t.Errorf("%s: got %d round trips, want %d", c.name, n, c.trips)
		}
	}
}

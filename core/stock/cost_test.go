package stock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/redistest"
)

// An immediate sale costs one round trip, and a sale by a reservation two. The caller
// that comes when the lease of the last unit has ended pays two more.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	s := newStock(t, srv.Client(t), prefix, &stock.Options{Lease: time.Hour})
	if err := s.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	const n = 50
	open(t, s, "item", 4*n)
	open(t, s, "gone", 1)
	reserve(t, s, "gone", "last", "1", nil)
	place := 0
	for _, c := range []struct {
		name  string
		trips int64
		call  func(buyer string) error
	}{
		{"Reserve at once", 1, func(buyer string) error { reserve(t, s, "item", buyer, "1", atOnce); return nil }},
		{"Reserve at once, and Cancel", 2, func(buyer string) error {
			return reserve(t, s, "item", "c"+buyer, "1", atOnce).Cancel(t.Context())
		}},
		{"Reserve, and Confirm twice", 2, func(buyer string) error {
			r := reserve(t, s, "item", "l"+buyer, "1", nil)
			if err := r.Confirm(t.Context()); err != nil {
				return err
			}
			return r.Confirm(t.Context())
		}},
		{"Reserve of what is held", 1, func(buyer string) error {
			refused(t, s, "gone", buyer, "1", nil, stock.ErrSoldOut)
			return nil
		}},
		{"Reserve behind a lapse", 3, func(buyer string) error {
			place++
			lapse(t, admin, nameOf(prefix, "gone"), place, 1)
			reserve(t, s, "gone", buyer, "1", nil)
			return nil
		}},
	} {
		redistest.ResetStats(t, admin)
		for i := range n {
			if err := c.call(fmt.Sprint("buyer", i)); err != nil {
				t.Fatal(err)
			}
		}
		stats := redistest.CommandStats(t, admin)
		if got := stats["evalsha"].Calls; got != n*c.trips || stats["eval"].Calls+stats["script|load"].Calls != 0 {
			t.Errorf("%s: got %d calls for %d buyers, want %d and no scripts sent: %v",
				c.name, got, n, n*c.trips, stats)
		}
	}
}

// A buyer takes at most 200 bytes of the server's memory.
func TestMemoryOfABuyer(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	prefix := srv.Prefix(t)
	s := newStock(t, srv.Client(t), prefix, nil)
	for name, c := range map[string]struct {
		opts *stock.ReserveOptions
		most int64
	}{"sold": {atOnce, 200}, "held": {nil, 400}} {
		const n = 1000
		open(t, s, name, n)
		for i := range n {
			reserve(t, s, name, fmt.Sprintf("buyer-%08d", i), fmt.Sprintf("order-%08d", i), c.opts)
		}
		took, err := srv.Admin(t).MemoryUsage(t.Context(), nameOf(prefix, name), 0).Result()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes a buyer", name, took/n)
		if took > c.most*n {
			t.Errorf("%s: got %d bytes a buyer, want %d at most", name, took/n, c.most)
		}
	}
}

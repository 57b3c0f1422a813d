package stock_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/redistest"
)

// renewals counts the calls that renew, and what they renew.
type renewals struct {
	lease        string
	calls, items atomic.Int64
}

func (c *renewals) see(cmd redis.Cmder) {
	if args := cmd.Args(); len(args) > 5 && fmt.Sprint(args[4]) == c.lease {
		c.calls.Add(1)
		c.items.Add(int64(len(args)-5) / 3)
	}
}

// TestReservationsOfOneItemAreRenewedTogether, and each has an answer of its own: one that
// was sold elsewhere needs no lease any more, and one that was given back is lost.
func TestReservationsOfOneItemAreRenewedTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const many = 200
		rdb := inBubble(t)
		seen := &renewals{lease: strconv.FormatInt(defaultLease.Milliseconds(), 10)}
		rdb.AddHook(redistest.BeforeHook(seen.see))
		s := newStock(t, rdb, "neap", nil)
		open(t, s, "item", many)
		all := make([]*stock.Reservation, many)
		for i := range all {
			all[i] = reserve(t, s, "item", fmt.Sprint("buyer", i), "1", &stock.ReserveOptions{Renew: true})
		}
		elsewhere := func(i int) *stock.Reservation {
			r, err := s.Resume("item", fmt.Sprint("buyer", i), "1", nil)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if err := errors.Join(elsewhere(0).Confirm(t.Context()), elsewhere(1).Cancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		time.Sleep(defaultLease * 2 / 5)
		if calls, items := seen.calls.Load(), seen.items.Load(); items < many || calls > items/25 {
			t.Errorf("got %d calls for %d renewals, want each reservation renewed, and tens by one call", calls, items)
		}
		time.Sleep(2 * defaultLease)
		for i, r := range all {
			switch err := r.Err(); {
			case i == 0 && (err != nil || !r.Confirmed()):
				t.Errorf("what was sold elsewhere: got %v and confirmed %t, want no error and true", err, r.Confirmed())
			case i == 1 && !errors.Is(err, stock.ErrLapsed):
				t.Errorf("what was given back elsewhere: got %v, want %v", err, stock.ErrLapsed)
			case i > 1 && err != nil:
				t.Errorf("reservation %d: got %v, want no error", i, err)
			}
		}
		counts(t, s, "item", 1, many-2, 1)
		if n := s.Stats(); n.Holding != many-2 || n.Lapsed != 1 {
			t.Errorf("got stats %+v, want %d holding and 1 lapsed", n, many-2)
		}
		for _, r := range all {
			_ = r.Cancel(t.Context())
		}
		counts(t, s, "item", many-1, 0, 1)
	})
}

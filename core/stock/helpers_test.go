package stock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

func newStock(tb testing.TB, rdb script.Client, prefix string, opts *stock.Options) *stock.Stock {
	tb.Helper()
	var own stock.Options
	if opts != nil {
		own = *opts
	}
	if own.Budget == 0 {
		own.Budget = 10 * time.Second // the machine may be busy
	}
	s, err := stock.New(storetest.At(tb, rdb, prefix), "test", &own)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// open opens an item for one hour.
func open(tb testing.TB, s *stock.Stock, item string, units int64) {
	tb.Helper()
	if opened, err := s.Open(tb.Context(), item, units, time.Now().Add(time.Hour)); !opened || err != nil {
		tb.Fatalf("Open of %s: got %t, %v, want true and no error", item, opened, err)
	}
}

func reserve(tb testing.TB, s *stock.Stock, item, buyer, id string, opts *stock.ReserveOptions) *stock.Reservation {
	tb.Helper()
	r, err := s.Reserve(tb.Context(), item, buyer, id, opts)
	if err != nil {
		tb.Fatalf("Reserve of %s by %s as %s: got %v, want no error", item, buyer, id, err)
	}
	return r
}

func refused(tb testing.TB, s *stock.Stock, item, buyer, id string, opts *stock.ReserveOptions, want error) {
	tb.Helper()
	if r, err := s.Reserve(tb.Context(), item, buyer, id, opts); r != nil || !errors.Is(err, want) {
		tb.Errorf("Reserve of %s by %s as %s: got %v, want no reservation and %v", item, buyer, id, err, want)
	}
}

// counts checks how many units of an item are left, held and sold.
func counts(tb testing.TB, s *stock.Stock, item string, left, held, sold int64) {
	tb.Helper()
	l, err := s.Left(tb.Context(), item)
	if err != nil || l.Left != left || l.Held != held || l.Sold != sold || l.Units != left+held+sold {
		tb.Errorf("%s: got %+v, %v, want %d left, %d held and %d sold", item, l, err, left, held, sold)
	}
}

// nameOf returns the name of an item's record in Redis, for an item that needs no hash.
func nameOf(prefix, item string) string { return prefix + ":stock:test:{" + item + "}" }

// left waits until a Stock has nothing left to do.
func left(tb testing.TB, stocks ...*stock.Stock) {
	tb.Helper()
	redistest.Await(tb, time.Minute, "the end of all", func() bool {
		for _, s := range stocks {
			if n := s.Stats(); n.Undoing+n.Concluding > 0 {
				return false
			}
		}
		return true
	})
}

var atOnce = &stock.ReserveOptions{Confirm: true}

// inBubble returns a client of a miniredis that uses the clock of the bubble.
func inBubble(t *testing.T) *redis.Client {
	t.Helper()
	m := redistest.Bubble(t)
	return redistest.BubbleClient(t, m)
}

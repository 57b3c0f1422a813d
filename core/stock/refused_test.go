package stock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/redistest"
)

// TestACancelThatIsRefusedForLongerThanALease: an operator takes rights from the user, for
// hours. What is sold, or may be, is given back afterwards, since no lease ends it. Anything
// else that is given up is counted.
func TestACancelThatIsRefusedForLongerThanALease(t *testing.T) {
	t.Parallel()
	lost := func(t *testing.T, rdb *redistest.CutClient, call func() error) {
		t.Helper()
		rdb.Cut("lost")
		if err := call(); !errors.Is(err, script.ErrMaybeExecuted) {
			t.Errorf("a call whose reply is lost: got %v, want %v", err, script.ErrMaybeExecuted)
		}
		rdb.Mend()
	}
	for name, c := range map[string]struct {
		makes func(t *testing.T, rdb *redistest.CutClient, s *stock.Stock) (concludes func() error) // nil if it goes on by itself
		drops uint64
		left  int64
	}{
		"sold at once": {makes: func(t *testing.T, _ *redistest.CutClient, s *stock.Stock) func() error {
			r := reserve(t, s, "item", "ann", "1", atOnce)
			return func() error { return r.Cancel(t.Context()) }
		}, left: 1},
		"sold at once, in doubt": {makes: func(t *testing.T, rdb *redistest.CutClient, s *stock.Stock) func() error {
			lost(t, rdb, func() error { _, err := s.Reserve(t.Context(), "item", "ann", "1", atOnce); return err })
			return nil
		}, left: 1},
		"confirmed": {makes: func(t *testing.T, _ *redistest.CutClient, s *stock.Stock) func() error {
			r := reserve(t, s, "item", "ann", "1", nil)
			if err := r.Confirm(t.Context()); err != nil {
				t.Error(err)
			}
			return func() error { return r.Cancel(t.Context()) }
		}, left: 1},
		"confirmed, in doubt": {makes: func(t *testing.T, rdb *redistest.CutClient, s *stock.Stock) func() error {
			r := reserve(t, s, "item", "ann", "1", nil)
			lost(t, rdb, func() error { return r.Confirm(t.Context()) })
			return func() error { return r.Cancel(t.Context()) }
		}, left: 1},
		"on a lease": {makes: func(t *testing.T, _ *redistest.CutClient, s *stock.Stock) func() error {
			r := reserve(t, s, "item", "ann", "1", nil)
			return func() error { return r.Cancel(t.Context()) }
		}, drops: 1, left: 1},
		"a Confirm": {makes: func(t *testing.T, _ *redistest.CutClient, s *stock.Stock) func() error {
			r := reserve(t, s, "item", "ann", "1", nil)
			return func() error { return r.Confirm(t.Context()) }
		}, drops: 1, left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rdb := &redistest.CutClient{Client: inBubble(t)}
				s := newStock(t, rdb, "neap", &stock.Options{Lease: time.Minute})
				open(t, s, "item", 1)
				concludes := c.makes(t, rdb, s)
				rdb.Cut("forbidden")
				if concludes != nil {
					if err := concludes(); !errors.Is(err, script.ErrConfiguration) && !errors.Is(err, script.ErrMaybeExecuted) {
						t.Errorf("a conclusion without rights: got %v, want an error", err)
					}
				}
				time.Sleep(10 * time.Minute)
				if got := s.Stats(); got.Dropped != c.drops || (got.Concluding+got.Undoing == 0) != (c.drops > 0) {
					t.Errorf("without rights: got stats %+v, want %d dropped, or one that goes on", got, c.drops)
				}
				rdb.Mend()
				time.Sleep(10 * time.Minute)
				l, err := s.Left(t.Context(), "item")
				if got := s.Stats(); err != nil || l.Left != c.left || got.Concluding+got.Undoing != 0 || got.Dropped != c.drops {
					t.Errorf("with its rights again: got %+v, %v and stats %+v, want %d left and %d dropped", l, err, got, c.left, c.drops)
				}
			})
		})
	}
}

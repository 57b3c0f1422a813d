package stock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
)

// TestKeptUnitsLapse: the units are held for one lease, also while the process lives, and
// return to stock then. The process that reserved them reports no loss.
func TestKeptUnitsLapse(t *testing.T) {
	t.Parallel()
	for name, renew := range map[string]bool{"alone": false, "with Renew": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newObserved(t)
				r := reserve(t, o.Stock, "item", "ann", "1", &stock.ReserveOptions{Keep: true, Renew: renew})
				if n := o.Stats(); n.Holding != 0 || n.Reserved != 1 {
					t.Errorf("got stats %+v, want 1 reserved and none holding", n)
				}
				time.Sleep(time.Hour - time.Millisecond)
				refused(t, o.other, "item", "bob", "1", atOnce, stock.ErrSoldOut)
				time.Sleep(time.Millisecond)
				reserve(t, o.other, "item", "bob", "1", atOnce)
				o.Are(t, "a lease later", store.Granted)
				if n := o.Stats(); n.Holding != 0 || n.Lapsed != 0 || r.Err() != nil {
					t.Errorf("got stats %+v and the error %v, want none holding, none lapsed, and no error", n, r.Err())
				}
				if err := r.Renew(t.Context()); !errors.Is(err, stock.ErrLapsed) {
					t.Errorf("Renew of what has lapsed: got %v, want %v", err, stock.ErrLapsed)
				}
				if err := r.Confirm(t.Context()); !errors.Is(err, stock.ErrLapsed) || !errors.Is(r.Err(), stock.ErrLapsed) {
					t.Errorf("Confirm when the unit is another's: got %v and then the error %v, want %v", err, r.Err(), stock.ErrLapsed)
				}
				o.Are(t, "Confirm", store.Lost)
			})
		})
	}
}

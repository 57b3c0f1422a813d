package stock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// observed is a Stock in a bubble, and what its observers are told. Its leases last for
// an hour, and an item has one unit for a day. The other Stock has no observers.
type observed struct {
	*stock.Stock
	storetest.Outcomes

	other *stock.Stock
	rdb   *redistest.CutClient
}

func newObserved(t *testing.T) *observed {
	t.Helper()
	o := &observed{Outcomes: storetest.Outcomes{Of: store.Stock}, rdb: &redistest.CutClient{Client: inBubble(t)}}
	st := storetest.At(t, o.rdb, "neap")
	st.Observe(o.Observe)
	var err error
	if o.Stock, err = stock.New(st, "test", &stock.Options{Lease: time.Hour}); err != nil {
		t.Fatal(err)
	}
	o.other = newStock(t, o.rdb.Client, "neap", nil)
	if _, err := o.other.Open(t.Context(), "item", 1, time.Now().Add(24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	return o
}

// resumed is a reservation by ann, made by another process.
func resumed(t *testing.T, s *stock.Stock, opts *stock.ReserveOptions) *stock.Reservation {
	t.Helper()
	r, err := s.Resume("item", "ann", "1", opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestALossIsReportedOnce: the end of the lease, a renewal or Confirm reports it, the one
// that finds it first.
func TestALossIsReportedOnce(t *testing.T) {
	t.Parallel()
	cancelled := func(t *testing.T, o *observed, opts *stock.ReserveOptions) *stock.Reservation {
		t.Helper()
		r := reserve(t, o.Stock, "item", "ann", "1", opts)
		if err := resumed(t, o.other, nil).Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		return r
	}
	for name, c := range map[string]struct {
		begin   func(t *testing.T, o *observed) *stock.Reservation
		passes  time.Duration // before Confirm
		before  []store.Outcome
		confirm []store.Outcome
	}{
		"the lease": {func(t *testing.T, o *observed) *stock.Reservation {
			return reserve(t, o.Stock, "item", "ann", "1", nil)
		}, 2 * time.Hour, []store.Outcome{store.Granted, store.Lost}, nil},
		"a renewal": {func(t *testing.T, o *observed) *stock.Reservation {
			return cancelled(t, o, &stock.ReserveOptions{Renew: true})
		}, 30 * time.Minute, []store.Outcome{store.Granted, store.Lost}, nil},
		"Confirm": {func(t *testing.T, o *observed) *stock.Reservation {
			return cancelled(t, o, nil)
		}, 0, []store.Outcome{store.Granted}, []store.Outcome{store.Lost}},
		"Confirm without a lease": {func(t *testing.T, o *observed) *stock.Reservation {
			return resumed(t, o.Stock, nil)
		}, 0, nil, []store.Outcome{store.Lost}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newObserved(t)
				r := c.begin(t, o)
				time.Sleep(c.passes)
				reserve(t, o.other, "item", "bob", "1", atOnce)
				o.Are(t, "before Confirm", c.before...)
				for range 2 {
					if err := r.Confirm(t.Context()); !errors.Is(err, stock.ErrLapsed) {
						t.Errorf("Confirm when the unit is another's: got %v, want %v", err, stock.ErrLapsed)
					}
				}
				time.Sleep(2 * time.Hour)
				o.Are(t, "Confirm, and later", c.confirm...)
			})
		})
	}
}

// TestARefusedConfirmIsReported each time that Confirm is called, because a later call
// may succeed.
func TestARefusedConfirmIsReported(t *testing.T) {
	t.Parallel()
	for want, c := range map[error]struct {
		told   store.Outcome
		opts   *stock.ReserveOptions // of Resume
		spoils func(t *testing.T, o *observed) error
	}{
		stock.ErrUnknown: {store.Refused, nil, func(t *testing.T, o *observed) error {
			_, err := o.other.Forget(t.Context(), "item")
			return err
		}},
		stock.ErrQuantity: {store.Refused, &stock.ReserveOptions{Quantity: 2}, func(*testing.T, *observed) error { return nil }},
		stock.ErrDisagrees: {store.Disagreed, nil, func(t *testing.T, o *observed) error {
			return o.rdb.HSet(t.Context(), nameOf("neap", "item"), "left", 9).Err()
		}},
	} {
		t.Run(want.Error(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newObserved(t)
				reserve(t, o.other, "item", "ann", "1", atOnce)
				r := resumed(t, o.Stock, c.opts)
				if err := c.spoils(t, o); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if err := r.Confirm(t.Context()); !errors.Is(err, want) {
						t.Errorf("Confirm: got %v, want %v", err, want)
					}
					o.Are(t, "Confirm", c.told)
				}

				late := resumed(t, o.Stock, c.opts)
				o.rdb.Cut("refused")
				if err := late.Confirm(t.Context()); !isScripts(err) {
					t.Errorf("Confirm without Redis: got %v, want an error of a script", err)
				}
				o.Are(t, "Confirm without Redis")
				o.rdb.Mend()
				time.Sleep(time.Minute)
				o.Are(t, "the answer to a Confirm that goes on in the background", c.told)
				if want == stock.ErrDisagrees {
					_, err := o.Reserve(t.Context(), "item", "ben", "1", nil)
					if !errors.Is(err, want) {
						t.Errorf("Reserve: got %v, want %v", err, want)
					}
					o.Are(t, "Reserve", c.told)
				}
			})
		})
	}
}

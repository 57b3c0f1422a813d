package stock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

// TestALapse: units that are neither confirmed nor renewed return to stock. Their holder
// can have them again while there are units. The clock is that of the bubble.
func TestALapse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := newStock(t, inBubble(t), "neap", nil)
		open(t, s, "item", 4)
		ann, bob := reserve(t, s, "item", "ann", "1", nil), reserve(t, s, "item", "bob", "1", nil)
		kept := reserve(t, s, "item", "kept", "1", &stock.ReserveOptions{Renew: true})
		cid := reserve(t, s, "item", "cid", "1", nil)
		time.Sleep(defaultLease * 2 / 3)
		if err := cid.Renew(ctx); err != nil {
			t.Error(err)
		}
		time.Sleep(defaultLease / 3)
		counts(t, s, "item", 2, 2, 0)
		if n := s.Stats(); n.Holding != 2 || n.Lapsed != 2 {
			t.Errorf("got stats %+v, want 2 holding and 2 lapsed", n)
		}
		if !errors.Is(ann.Err(), stock.ErrLapsed) || !errors.Is(ann.Renew(ctx), stock.ErrLapsed) {
			t.Errorf("what has lapsed: got %v, and of Renew %v, want %v of both",
				ann.Err(), ann.Renew(ctx), stock.ErrLapsed)
		}
		reserve(t, s, "item", "dan", "1", atOnce)
		for range 2 {
			if err := ann.Confirm(ctx); err != nil || ann.Err() != nil {
				t.Errorf("Confirm while there are units: got %v, %v, want no error", err, ann.Err())
			}
			if err := bob.Confirm(ctx); !errors.Is(err, stock.ErrLapsed) || !errors.Is(bob.Err(), stock.ErrLapsed) {
				t.Errorf("Confirm when there are none: got %v, %v, want %v of both", err, bob.Err(), stock.ErrLapsed)
			}
		}
		counts(t, s, "item", 0, 2, 2)
		time.Sleep(defaultLease)
		counts(t, s, "item", 1, 1, 2)
		if err := bob.Confirm(ctx); !errors.Is(err, stock.ErrLapsed) {
			t.Errorf("Confirm of what was said to have lapsed: got %v, want %v", err, stock.ErrLapsed)
		}
		if err := kept.Err(); err != nil {
			t.Errorf("what is renewed: got %v, want no error", err)
		}
		refused(t, s, "item", "ann", "2", nil, stock.ErrYours)
		reserve(t, s, "item", "bob", "2", atOnce)
		if err := kept.Confirm(ctx); err != nil {
			t.Error(err)
		}
		counts(t, s, "item", 0, 0, 4)
		time.Sleep(2 * time.Hour)
		if _, err := s.Left(ctx, "item"); !errors.Is(err, stock.ErrUnknown) {
			t.Errorf("Left after until: got %v, want %v", err, stock.ErrUnknown)
		}
		if n := s.Stats(); n.Holding != 0 || n.Refused != 1 || n.Confirmed != 2 || n.AtOnce != 2 || n.Reserved != 6 {
			t.Errorf("got stats %+v, want none holding, 1 refused, 2 confirmed, 2 at once and 6 reserved", n)
		}
	})
}

// TestResume: a process can confirm or cancel a reservation that another one made.
func TestResume(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		ctx := t.Context()
		s, other := newStock(t, rdb, prefix, nil), newStock(t, rdb, prefix, nil)
		open(t, s, "item", 5)
		two := &stock.ReserveOptions{Quantity: 2}
		resume := func(buyer string) *stock.Reservation {
			t.Helper()
			r, err := other.Resume("item", buyer, "1", two)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		ann := reserve(t, s, "item", "ann", "1", two)
		if err := resume("ann").Renew(ctx); err != nil {
			t.Error(err)
		}
		if err := resume("ann").Confirm(ctx); err != nil {
			t.Error(err)
		}
		counts(t, s, "item", 3, 0, 2)
		if err := errors.Join(ann.Renew(ctx), ann.Err(), ann.Confirm(ctx)); err != nil || !ann.Confirmed() {
			t.Errorf("what another has confirmed: got %v, confirmed %t, want no error and true", err, ann.Confirmed())
		}
		if err := resume("ann").Cancel(ctx); err != nil {
			t.Error(err)
		}
		counts(t, s, "item", 5, 0, 0)
		reserve(t, s, "item", "bob", "1", two)
		reserve(t, s, "item", "bob", "1", two)
		if err := resume("bob").Cancel(ctx); err != nil {
			t.Error(err)
		}
		counts(t, s, "item", 5, 0, 0)
		if err := resume("cid").Confirm(ctx); err != nil {
			t.Errorf("Confirm of what is left: got %v, want no error", err)
		}
		counts(t, s, "item", 3, 0, 2)
		refused(t, s, "item", "cid", "1", nil, stock.ErrQuantity)
		if err := resume("dan").Renew(ctx); !errors.Is(err, stock.ErrLapsed) {
			t.Errorf("Renew of what is not there: got %v, want %v", err, stock.ErrLapsed)
		}
	})
}

// TestMostUnits: an item takes no more than MaxUnits in all.
func TestMostUnits(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		s := newStock(t, rdb, prefix, nil)
		open(t, s, "item", stock.MaxUnits-1)
		if err := s.Restock(t.Context(), "item", "two", 2); !errors.Is(err, stock.ErrUnits) {
			t.Errorf("one too many: got %v, want %v", err, stock.ErrUnits)
		}
		counts(t, s, "item", stock.MaxUnits-1, 0, 0)
		if err := s.Restock(t.Context(), "item", "one", 1); err != nil {
			t.Error(err)
		}
		counts(t, s, "item", stock.MaxUnits, 0, 0)
	})
}

// TestTheNinthCall: eight calls can have a reservation at a time, and each has a part of
// it, which it can give back: a buyer that asked eight times must cancel eight times. A
// ninth call is refused. There is room again when one of them has cancelled.
func TestTheNinthCall(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		ctx := t.Context()
		s := newStock(t, rdb, prefix, nil)
		for item, opts := range map[string]*stock.ReserveOptions{"leased": nil, "at-once": atOnce} {
			open(t, s, item, 1)
			var all []*stock.Reservation
			for i := range 8 {
				r := reserve(t, s, item, "ann", "1", opts)
				all = append(all, r)
				if r.Again() != (i > 0) {
					t.Errorf("%s, call %d: got again %t, want %t", item, i, r.Again(), i > 0)
				}
			}
			for _, ninth := range []*stock.ReserveOptions{nil, atOnce} {
				refused(t, s, item, "ann", "1", ninth, stock.ErrCalls)
			}
			if err := all[3].Cancel(ctx); err != nil {
				t.Error(err)
			}
			all[3] = reserve(t, s, item, "ann", "1", opts)
			refused(t, s, item, "ann", "1", opts, stock.ErrCalls)
			for i := range all {
				refused(t, s, item, "bob", "1", opts, stock.ErrSoldOut)
				if err := all[i^1].Cancel(ctx); err != nil { // in another order than they came in
					t.Error(err)
				}
			}
			counts(t, s, item, 1, 0, 0)
		}
	})
}

// TestConfirmBesideEight: Confirm is refused to no call, such as that of a payment's
// callback. What eight others then cancel stays sold, and only Resume can cancel it.
func TestConfirmBesideEight(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		ctx := t.Context()
		s := newStock(t, rdb, prefix, nil)
		for item, opts := range map[string]*stock.ReserveOptions{"leased": nil, "at-once": atOnce} {
			open(t, s, item, 1)
			var all []*stock.Reservation
			for range 8 {
				all = append(all, reserve(t, s, item, "ann", "1", opts))
			}
			whole, err := s.Resume(item, "ann", "1", nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := whole.Confirm(ctx); err != nil {
				t.Errorf("the callback's Confirm: got %v, want no error", err)
			}
			for _, r := range append(all, reserve(t, s, item, "ann", "1", opts)) {
				if err := r.Cancel(ctx); err != nil {
					t.Error(err)
				}
			}
			counts(t, s, item, 0, 0, 1)
			n, err := admin.Eval(ctx, script.FromFS(lua.FS, "stock_cancel.lua").Source(), []string{nameOf(prefix, item)}, "ann", "1", "token").Int64()
			if n != 2 || err != nil {
				t.Errorf("the cancel script for an unknown call: got %d, %v, want 2", n, err)
			}
			if err := whole.Cancel(ctx); err != nil {
				t.Error(err)
			}
			counts(t, s, item, 1, 0, 0)
		}
	})
}

// TestAContextWithoutAReservation has none, also if nil was put into it.
func TestAContextWithoutAReservation(t *testing.T) {
	t.Parallel()
	for name, ctx := range map[string]context.Context{"nothing": t.Context(), "nil": stock.NewContext(t.Context(), nil)} {
		if r, ok := stock.FromContext(ctx); r != nil || ok {
			t.Errorf("FromContext of %s: got %v, %t, want nil and false", name, r, ok)
		}
	}
}

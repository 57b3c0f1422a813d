package stock_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

// lapse ends the lease at a place of the queue, or sets the time at which it ends.
func lapse(t *testing.T, admin redis.UniversalClient, key string, place int, ends int64) {
	t.Helper()
	field := fmt.Sprint("q:", place)
	entry, err := admin.HMGet(t.Context(), key, field).Result()
	if err != nil || entry[0] == nil {
		t.Fatalf("got %v, %v in the field %s, want a lease", entry, err, field)
	}
	var was, lease, quantity int64
	var buyer string
	if _, err := fmt.Sscan(entry[0].(string), &was, &lease, &quantity, &buyer); err != nil {
		t.Fatal(err)
	}
	if err := admin.HSet(t.Context(), key, field, fmt.Sprint(ends, " ", lease, " ", quantity, " ", buyer)).Err(); err != nil {
		t.Fatal(err)
	}
}

// TestManyLapse: a thousand leases end, and many more were confirmed or cancelled before.
// All their units can be reserved again. Each sweep looks at a limited number of places,
// and nothing of the ended leases stays behind.
func TestManyLapse(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		ctx := t.Context()
		s := newStock(t, rdb, prefix, nil)
		n := redistest.Ops(3000)
		open(t, s, "item", int64(n))
		key := nameOf(prefix, "item")
		sold := int64(0)
		for i := range n {
			r := reserve(t, s, "item", fmt.Sprint("buyer", i), "1", nil)
			if i%3 == 0 && i > 0 && i < n-10 {
				sold++
				if err := r.Confirm(ctx); err != nil {
					t.Fatal(err)
				}
			} else {
				lapse(t, admin, key, i+1, 1)
			}
		}
		last := reserve(t, s, "item", "last", "1", nil)
		counts(t, s, "item", int64(n)-sold-1, 1, sold)
		if fields := admin.HLen(ctx, key).Val(); fields != 9+sold+2 {
			t.Errorf("got %d fields for %d buyers and the last, want %d", fields, sold, 9+sold+2)
		}
		if err := last.Confirm(ctx); err != nil {
			t.Error(err)
		}
		all := int64(n) - sold - 1
		reserve(t, s, "item", "all", "1", &stock.ReserveOptions{Quantity: all, Confirm: true})
		counts(t, s, "item", 0, 0, int64(n))
	})
}

// TestClockSetBack: after the clock was set back, a lease may end later than it can. The
// next call that sees it cuts it, also behind leases that have ended.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		ctx := t.Context()
		s := newStock(t, rdb, prefix, nil)
		open(t, s, "item", 3)
		key := nameOf(prefix, "item")
		for i, buyer := range []string{"ann", "bob", "cid"} {
			reserve(t, s, "item", buyer, "1", nil)
			ends := time.Now().Add(100 * time.Hour).UnixMilli()
			if buyer == "bob" {
				ends = 1
			}
			lapse(t, admin, key, i+1, ends)
		}
		counts(t, s, "item", 1, 2, 0)
		reserve(t, s, "item", "dan", "1", atOnce)
		for b, err := range s.Buyers(ctx, "item") {
			if err != nil || b.Lease > s.Lease() || !b.Sold && b.Lease < s.Lease()-time.Minute {
				t.Errorf("got the buyer %+v, %v, want a lease of about %v, or none if it is sold", b, err, s.Lease())
			}
		}
		for _, place := range []int{1, 3} {
			entry := admin.HMGet(ctx, key, fmt.Sprint("q:", place)).Val()[0]
			var ends int64
			if _, err := fmt.Sscan(fmt.Sprint(entry), &ends); err != nil || ends > time.Now().Add(s.Lease()+time.Second).UnixMilli() {
				t.Errorf("in place %d there is %v, want an end within %v", place, entry, s.Lease()+time.Second)
			}
		}
		refused(t, s, "item", "eve", "1", nil, stock.ErrSoldOut)
	})
}

// TestClockSetBackUnderMany: a call that finds nothing left cuts all leases that end
// later than they can, although one script looks at a limited number of them.
func TestClockSetBackUnderMany(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		ctx := t.Context()
		s := newStock(t, rdb, prefix, nil)
		for item, ask := range map[string]func(item string) error{
			"reserve": func(item string) error {
				_, err := s.Reserve(ctx, item, "eve", "1", atOnce)
				return err
			},
			"left": func(item string) error {
				_, err := s.Left(ctx, item)
				return cmp.Or(err, stock.ErrSoldOut)
			},
		} {
			const n = 600
			open(t, s, item, n)
			key := nameOf(prefix, item)
			edits := admin.Pipeline()
			for i := range n {
				buyer := fmt.Sprint("buyer", i)
				reserve(t, s, item, buyer, "1", nil)
				edits.HSet(ctx, key, fmt.Sprint("q:", i+1), fmt.Sprint(time.Now().Add(100*time.Hour).UnixMilli(), " 30000 1 ", buyer))
			}
			if _, err := edits.Exec(ctx); err != nil {
				t.Fatal(err)
			}
			if err := ask(item); !errors.Is(err, stock.ErrSoldOut) {
				t.Errorf("%s: got %v, want %v", item, err, stock.ErrSoldOut)
			}
			late := 0
			for field, entry := range admin.HGetAll(ctx, key).Val() {
				var ends int64
				if _, err := fmt.Sscan(entry, &ends); strings.HasPrefix(field, "q:") && (err != nil || ends > time.Now().Add(s.Lease()+time.Second).UnixMilli()) {
					late++
				}
			}
			if late > 0 {
				t.Errorf("%s: %d leases end later than they can, want none", item, late)
			}
			counts(t, s, item, 0, n, 0)
			for place := range n {
				edits.HSet(ctx, key, fmt.Sprint("q:", place+1), fmt.Sprint("1 30000 1 buyer", place))
			}
			if _, err := edits.Exec(ctx); err != nil {
				t.Fatal(err)
			}
			counts(t, s, item, n, 0, 0)
		}
	})
}

// TestALapseBesideANewReservation: a buyer's entry was removed by hand, and the buyer has
// reserved again since. When the lease from before ends, the new reservation stays.
func TestALapseBesideANewReservation(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		s := newStock(t, rdb, prefix, nil)
		for item, opts := range map[string]*stock.ReserveOptions{"sold": atOnce, "held": nil} {
			key := nameOf(prefix, item)
			open(t, s, item, 3)
			reserve(t, s, item, "ann", "1", nil)
			admin.HDel(t.Context(), key, "b:ann")
			own := reserve(t, s, item, "ann", "2", opts)
			lapse(t, admin, key, 1, 1)
			if l, err := s.Left(t.Context(), item); err != nil || l.Left != 2 || l.Held+l.Sold != 1 {
				t.Errorf("%s: got %+v, %v, want 2 left, and 1 held or sold", item, l, err)
			}
			refused(t, s, item, "ann", "3", nil, stock.ErrYours)
			if err := own.Cancel(t.Context()); err != nil {
				t.Error(err)
			}
			counts(t, s, item, 3, 0, 0)
		}
	})
}

// endless is a client whose sweeps never come to an end.
type endless struct{ redis.UniversalClient }

func (e endless) Process(ctx context.Context, cmd redis.Cmder) error {
	err := e.UniversalClient.Process(ctx, cmd)
	if err == nil && strings.Contains(cmd.String(), sweepSHA) {
		cmd.(interface{ SetVal(any) }).SetVal(int64(1))
	}
	return err
}

// TestASweepEndsWithTheBudget, however many leases have ended.
func TestASweepEndsWithTheBudget(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	prefix := srv.Prefix(t)
	s := newStock(t, endless{srv.Client(t)}, prefix, &stock.Options{Budget: 2 * time.Second}) // no single sweep takes that long
	other := newStock(t, srv.Client(t), prefix, nil)                                          // a busy machine has this much time
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Warm(ctx); err != nil {
		t.Fatal(err)
	}
	for item, ask := range map[string]func(item string) error{
		"reserve": func(item string) error { _, err := s.Reserve(ctx, item, "bob", "1", atOnce); return err },
		"left":    func(item string) error { _, err := s.Left(ctx, item); return err },
	} {
		open(t, other, item, 1)
		reserve(t, other, item, "ann", "1", nil)
		lapse(t, srv.Admin(t), nameOf(prefix, item), 1, 1)
		if err := ask(item); !errors.Is(err, script.ErrNotExecuted) {
			t.Errorf("%s: got %v, want %v", item, err, script.ErrNotExecuted)
		}
		counts(t, other, item, 1, 0, 0) // the number of leases that were swept
	}
}

// TestEndedLeasesThatCannotBeDeleted makes each HDEL fail. A reservation that a script
// has ended is over all the same, and does not end twice.
func TestEndedLeasesThatCannotBeDeleted(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		ctx := t.Context()
		s := newStock(t, rdb, prefix, nil)
		run := func(item, source string, args ...any) {
			t.Helper()
			failing := strings.ReplaceAll(source, "pcall('HDEL'", "pcall('HDELX'")
			reply, err := admin.Eval(ctx, failing, []string{nameOf(prefix, item)}, args...).Result()
			if err != nil || strings.Contains(fmt.Sprint(reply), "-") || failing == source {
				t.Errorf("%s: a script that cannot delete: got %v, %v, want 0 at least, and no error", item, reply, err)
			}
		}
		for item, c := range map[string]struct {
			do   func(item string)
			sold int64
		}{
			"sweep": {func(item string) {
				lapse(t, admin, nameOf(prefix, item), 1, 1)
				run(item, script.FromFS(lua.FS, "stock_sweep.lua").Source(), "0")
			}, 0},
			"cancel": {func(item string) { run(item, script.FromFS(lua.FS, "stock_cancel.lua").Source(), "ann", "1", "") }, 0},
			"confirm": {func(item string) {
				run(item, script.FromFS(lua.FS, "stock_reserve.lua").Source(), "ann", "1", 2, "0", "token")
			}, 2},
			"renew": {func(item string) {
				run(item, script.FromFS(lua.FS, "stock_renew.lua").Source(), 30_000, "ann", "1", "")
				run(item, script.FromFS(lua.FS, "stock_cancel.lua").Source(), "ann", "1", "")
			}, 0},
		} {
			open(t, s, item, 5)
			reserve(t, s, item, "ann", "1", &stock.ReserveOptions{Quantity: 2})
			c.do(item)
			counts(t, s, item, 5-c.sold, 0, c.sold)
			for range 2 {
				if err := s.Sweep(ctx, nameOf(prefix, item)); err != nil {
					t.Errorf("%s: Sweep: got %v, want no error", item, err)
				}
			}
			counts(t, s, item, 5-c.sold, 0, c.sold)
			if ann, err := s.Resume(item, "ann", "1", &stock.ReserveOptions{Quantity: 2}); err != nil || c.sold == 0 && !errors.Is(ann.Renew(ctx), stock.ErrLapsed) {
				t.Errorf("%s: a reservation that has ended still exists (Resume: %v), want %v from its Renew",
					item, err, stock.ErrLapsed)
			}
			reserve(t, s, item, "ann", "1", &stock.ReserveOptions{Quantity: 2, Confirm: true})
			counts(t, s, item, 3, 0, 2)
		}
	})
}

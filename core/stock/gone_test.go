package stock_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// asks are the calls that sell something, or say what is sold.
func asks(t *testing.T, s *stock.Stock, item string, held *stock.Reservation) map[string]error {
	t.Helper()
	ctx := t.Context()
	all := map[string]error{"Renew": held.Renew(ctx), "Confirm": held.Confirm(ctx), "Restock": s.Restock(ctx, item, "more", 1)}
	_, all["Reserve"] = s.Reserve(ctx, item, "new", "1", nil)
	_, all["Reserve at once"] = s.Reserve(ctx, item, "new", "1", atOnce)
	_, all["Left"] = s.Left(ctx, item)
	for _, err := range s.Buyers(ctx, item) {
		all["Buyers"] = err
	}
	all["Cancel"] = held.Cancel(ctx)
	return all
}

// TestUnknownItemsAreNotSold: an item was deleted or evicted, or its sale is over
// although its key still exists. It is unknown to each call.
func TestUnknownItemsAreNotSold(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		ctx := t.Context()
		s := newStock(t, rdb, prefix, nil)
		for item, end := range map[string]func(key string) error{
			"deleted": func(key string) error { return admin.Del(ctx, key).Err() },
			"expired": func(key string) error { return admin.PExpire(ctx, key, -1).Err() },
			"over, and lives": func(key string) error {
				return errors.Join(admin.HSet(ctx, key, "until", time.Now().Add(-time.Second).UnixMilli()).Err(),
					admin.PExpire(ctx, key, 24*time.Hour).Err())
			},
			"over, and immortal": func(key string) error {
				return errors.Join(admin.HSet(ctx, key, "until", time.Now().Add(-time.Second).UnixMilli()).Err(), admin.Persist(ctx, key).Err())
			},
		} {
			name := strings.ReplaceAll(strings.ReplaceAll(item, ",", ""), " ", "-")
			open(t, s, name, 5)
			held := reserve(t, s, name, "ann", "1", nil)
			if err := end(nameOf(prefix, name)); err != nil {
				t.Fatal(err)
			}
			for call, err := range asks(t, s, name, held) {
				if !errors.Is(err, stock.ErrUnknown) {
					t.Errorf("%s, %s: got %v, want %v", item, call, err, stock.ErrUnknown)
				}
			}
			open(t, s, name, 1) // as a new sale
			counts(t, s, name, 1, 0, 0)
		}
	})
}

// TestItemsThatDisagreeAreNotSold edits each field of an item. The calls that would sell
// something or move a unit return an error, and change nothing.
func TestItemsThatDisagreeAreNotSold(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		ctx := t.Context()
		s := newStock(t, rdb, prefix, nil)
		edits := [][2]string{{"until", "soon"}, {"until", ""}}
		for _, field := range []string{"units", "left", "held", "sold"} {
			for _, value := range []string{"9", "0", "-1", "", "many", "nan", "inf", "1.5"} {
				edits = append(edits, [2]string{field, value})
			}
		}
		for i, e := range edits {
			item := fmt.Sprint("item", i)
			open(t, s, item, 12)
			held := reserve(t, s, item, "ann", "1", &stock.ReserveOptions{Quantity: 2})
			reserve(t, s, item, "bob", "1", &stock.ReserveOptions{Quantity: 3, Confirm: true})
			key := nameOf(prefix, item)
			if err := admin.HSet(ctx, key, e[0], e[1]).Err(); err != nil {
				t.Fatal(err)
			}
			before := admin.HGetAll(ctx, key).Val()
			for call, err := range asks(t, s, item, held) {
				whole := e[0] == "until" || call != "Renew" && call != "Buyers"
				if whole && !errors.Is(err, stock.ErrDisagrees) {
					t.Errorf("%s is %q, %s: got %v, want %v", e[0], e[1], call, err, stock.ErrDisagrees)
				}
			}
			after := admin.HGetAll(ctx, key).Val()
			for _, field := range []string{"units", "left", "held", "sold", "until"} {
				if before[field] != after[field] {
					t.Errorf("%s is %q: got %v, want %v as before", e[0], e[1], after, before)
				}
			}
		}
	})
}

// TestACancelWhoseItemDisagreesIsRepeated: it gave nothing back, so it can be called again when
// the counts are right.
func TestACancelWhoseItemDisagreesIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newObserved(t)
		r := reserve(t, o.Stock, "item", "ann", "1", atOnce)
		o.Are(t, "Reserve", store.Granted)
		for _, c := range []struct {
			left          string
			want          error
			told          store.Outcome
			cancellations uint64
		}{{"9", stock.ErrDisagrees, store.Disagreed, 0}, {"0", nil, store.Abandoned, 1}} {
			if err := o.rdb.HSet(t.Context(), nameOf("neap", "item"), "left", c.left).Err(); err != nil {
				t.Fatal(err)
			}
			if err := r.Cancel(t.Context()); !errors.Is(err, c.want) {
				t.Errorf("Cancel with %s left: got %v, want %v", c.left, err, c.want)
			}
			o.Are(t, "Cancel", c.told)
			if got := o.Stats().Cancellations; got != c.cancellations {
				t.Errorf("with %s left: got %d cancellations, want %d", c.left, got, c.cancellations)
			}
		}
		counts(t, o.other, "item", 1, 0, 0)
	})
}

// TestEditedReservation edits the entry of a buyer, and the queue.
func TestEditedReservation(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		ctx := t.Context()
		s := newStock(t, rdb, prefix, nil)
		for i, e := range [][2]string{
			{"b:ann", "nonsense"}, {"b:ann", "1 2 9 token"}, {"b:ann", "1 99 1 token"}, {"q:1", "nonsense"}, {"q:1", ""},
			{"first", "x"}, {"last", ""}, {"first", ""},
			{"first", "5"}, {"first", "0"}, {"first", "-1"}, {"first", "1.5"}, {"first", "nan"}, {"first", "inf"},
			{"last", "1"}, {"last", "2.5"}, {"last", "nan"}, {"last", "inf"}, {"last", "1e15"},
		} {
			item := fmt.Sprint("item", i)
			open(t, s, item, 2)
			held := reserve(t, s, item, "ann", "1", &stock.ReserveOptions{Quantity: 2})
			if err := admin.HSet(ctx, nameOf(prefix, item), e[0], e[1]).Err(); err != nil {
				t.Fatal(err)
			}
			if r, err := s.Reserve(ctx, item, "bob", "1", atOnce); r != nil || !errors.Is(err, stock.ErrSoldOut) && !errors.Is(err, stock.ErrDisagrees) {
				t.Errorf("%v: Reserve of another: got %v, want %v or %v", e, err, stock.ErrSoldOut, stock.ErrDisagrees)
			}
			switch {
			case e[0] == "first", e[0] == "last":
				lapse(t, admin, nameOf(prefix, item), 1, 1)
				refused(t, s, item, "bob", "1", atOnce, stock.ErrDisagrees)
			case e[1] == "nonsense" && e[0] == "b:ann":
				lapse(t, admin, nameOf(prefix, item), 1, 1)
				counts(t, s, item, 2, 0, 0)
				reserve(t, s, item, "ann", "1", &stock.ReserveOptions{Quantity: 2})
			}
			if err := held.Confirm(ctx); err != nil && !errors.Is(err, stock.ErrDisagrees) && !errors.Is(err, stock.ErrQuantity) {
				t.Errorf("%v: Confirm: got %v, want no error, %v or %v", e, err, stock.ErrDisagrees, stock.ErrQuantity)
			}
			if vals := admin.HMGet(ctx, nameOf(prefix, item), "left").Val(); vals[0] != "0" {
				t.Errorf("%v: got %v units left, want 0", e, vals[0])
			}
		}
		if err := admin.Set(ctx, nameOf(prefix, "string"), "5", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Reserve(ctx, "string", "ann", "1", nil); !isScripts(err) {
			t.Errorf("Reserve of a string: got %v, want an error of a script", err)
		}
		if err := admin.HSet(ctx, nameOf(prefix, "hash"), "a", "b").Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Open(ctx, "hash", 5, time.Now().Add(time.Hour)); !errors.Is(err, stock.ErrDisagrees) {
			t.Errorf("Open of another's hash: got %v, want %v", err, stock.ErrDisagrees)
		}
		admin.Del(ctx, nameOf(prefix, "hash"))
	})
}

// TestEditedCounts edits an item so that a buyer's units are in none of the counts, or so
// that the queue has no end. Asking again returns an error and changes nothing.
func TestEditedCounts(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		ctx := t.Context()
		s := newStock(t, rdb, prefix, nil)
		both := func(confirm bool) *stock.ReserveOptions { return &stock.ReserveOptions{Quantity: 2, Confirm: confirm} }
		for item, c := range map[string]struct {
			is, again *stock.ReserveOptions
			edit      func(key string) error
		}{
			"none-held":       {both(false), both(false), func(key string) error { return admin.HSet(ctx, key, "held", 0, "left", 2).Err() }},
			"none-to-confirm": {both(false), both(true), func(key string) error { return admin.HSet(ctx, key, "held", 0, "left", 2).Err() }},
			"none-sold":       {both(true), both(true), func(key string) error { return admin.HSet(ctx, key, "sold", 0, "left", 2).Err() }},
			"no-last":         {both(false), both(false), func(key string) error { return admin.HDel(ctx, key, "last").Err() }},
		} {
			open(t, s, item, 2)
			reserve(t, s, item, "ann", "1", c.is)
			key := nameOf(prefix, item)
			if err := c.edit(key); err != nil {
				t.Fatal(err)
			}
			before := admin.HGetAll(ctx, key).Val()
			refused(t, s, item, "ann", "1", c.again, stock.ErrDisagrees)
			if after := admin.HGetAll(ctx, key).Val(); !maps.Equal(before, after) {
				t.Errorf("%s: got %v, want %v as before", item, after, before)
			}
		}
	})
}

// TestTimeToLiveIsHealed: the TTL was removed, or is longer than until. Each call that
// writes restores it, and so does Left.
func TestTimeToLiveIsHealed(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		ctx := t.Context()
		s := newStock(t, rdb, prefix, nil)
		breaks := map[string]func(key string) error{
			"immortal": func(key string) error { return admin.Persist(ctx, key).Err() },
			"longer":   func(key string) error { return admin.PExpire(ctx, key, 48*time.Hour).Err() },
		}
		for how, end := range breaks {
			for call, do := range map[string]func(item string, ann *stock.Reservation) error{
				"Reserve": func(item string, _ *stock.Reservation) error {
					_, err := s.Reserve(ctx, item, "bob", "1", nil)
					return err
				},
				"at-once": func(item string, _ *stock.Reservation) error {
					_, err := s.Reserve(ctx, item, "bob", "1", atOnce)
					return err
				},
				"denied": func(item string, _ *stock.Reservation) error {
					if _, err := s.Reserve(ctx, item, "bob", "1", &stock.ReserveOptions{Quantity: 9}); !errors.Is(err, stock.ErrSoldOut) {
						return errors.New("it is not sold out")
					}
					return nil
				},
				"Confirm": func(_ string, ann *stock.Reservation) error { return ann.Confirm(ctx) },
				"Renew":   func(_ string, ann *stock.Reservation) error { return ann.Renew(ctx) },
				"Cancel":  func(_ string, ann *stock.Reservation) error { return ann.Cancel(ctx) },
				"Restock": func(item string, _ *stock.Reservation) error { return s.Restock(ctx, item, "1", 1) },
				"Left":    func(item string, _ *stock.Reservation) error { _, err := s.Left(ctx, item); return err },
			} {
				item := how + "-" + call
				open(t, s, item, 3)
				ann := reserve(t, s, item, "ann", "1", nil)
				key := nameOf(prefix, item)
				if err := end(key); err != nil {
					t.Fatal(err)
				}
				if err := do(item, ann); err != nil {
					t.Errorf("%s: got %v, want no error", item, err)
				}
				if ttl := admin.PTTL(ctx, key).Val(); ttl <= 0 || ttl > time.Hour+time.Second {
					t.Errorf("%s: got %v to live, want up to %v", item, ttl, time.Hour+time.Second)
				}
			}
		}
	})
}

// TestOpenReplacesNothingElse: if Open did not write the end of a sale, Open leaves the
// record and its buyers as they are.
func TestOpenReplacesNothingElse(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		ctx := t.Context()
		s := newStock(t, rdb, prefix, nil)
		for i, until := range []string{"nan", "inf", "-1", "0", "5", "0x1", "1e3", "1.5e12", "1000000000000.5", "soon", " ", ""} {
			item := fmt.Sprint("item", i)
			open(t, s, item, 1)
			reserve(t, s, item, "ann", "1", atOnce)
			if err := admin.HSet(ctx, nameOf(prefix, item), "until", until).Err(); err != nil {
				t.Fatal(err)
			}
			if opened, err := s.Open(ctx, item, 1, time.Now().Add(time.Hour)); opened || !errors.Is(err, stock.ErrDisagrees) {
				t.Errorf("until is %q: got opened %t, %v, want false and %v", until, opened, err, stock.ErrDisagrees)
			}
			if sold := admin.HMGet(ctx, nameOf(prefix, item), "sold").Val(); sold[0] != "1" {
				t.Errorf("until is %q: got %v sold, want 1", until, sold[0])
			}
		}
	})
}

package stock_test

import (
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
	"github.com/neap-go/neap/internal/storetest"
	"github.com/neap-go/neap/lua"
)

// TestFullServer uses a server without free memory. It reserves nothing. It still renews,
// confirms and cancels the reservations that it has.
func TestFullServer(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t, "--maxmemory", "1gb", "--maxmemory-policy", "noeviction")
	ctx := t.Context()
	s := newStock(t, srv.Client(t), srv.Prefix(t), nil)
	if err := s.Warm(ctx); err != nil {
		t.Fatal(err)
	}
	open(t, s, "item", 9)
	all := map[string]*stock.Reservation{}
	for _, buyer := range []string{"ann", "bob", "cid"} {
		all[buyer] = reserve(t, s, "item", buyer, "1", nil)
	}
	all["dan"] = reserve(t, s, "item", "dan", "1", atOnce)
	memory := func(most string) {
		if err := srv.Admin(t).ConfigSet(ctx, "maxmemory", most).Err(); err != nil {
			t.Fatal(err)
		}
	}
	memory("1")
	for _, opts := range []*stock.ReserveOptions{nil, atOnce} {
		if r, err := s.Reserve(ctx, "item", "eve", "1", opts); r != nil || !errors.Is(err, script.ErrNotExecuted) {
			t.Errorf("Reserve without memory: got %v, want no reservation and %v", err, script.ErrNotExecuted)
		}
	}
	if _, err := s.Open(ctx, "other", 1, time.Now().Add(time.Hour)); !errors.Is(err, script.ErrNotExecuted) {
		t.Errorf("Open without memory: got %v, want %v", err, script.ErrNotExecuted)
	}
	counts(t, s, "item", 5, 3, 1)
	refused(t, s, "item", "ann", "2", nil, stock.ErrYours)
	refused(t, s, "item", "eve", "1", &stock.ReserveOptions{Quantity: 9}, stock.ErrSoldOut)
	if err := errors.Join(
		all["ann"].Confirm(ctx), all["bob"].Renew(ctx), all["cid"].Cancel(ctx), all["dan"].Cancel(ctx),
	); err != nil {
		t.Error(err)
	}
	counts(t, s, "item", 7, 1, 1)
	memory("1gb")
	reserve(t, s, "item", "eve", "1", atOnce)
	counts(t, s, "item", 6, 1, 2)
}

// TestAnItemIsHashed: even an item with few buyers is a hash table in Redis, so no call
// goes through all fields to find a buyer.
func TestAnItemIsHashed(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	prefix := srv.Prefix(t)
	s := newStock(t, srv.Client(t), prefix, nil)
	open(t, s, "item", 1)
	if got := srv.Admin(t).ObjectEncoding(t.Context(), nameOf(prefix, "item")).Val(); got != "hashtable" {
		t.Errorf("got the encoding %s, want hashtable", got)
	}
}

// TestAnItemMovesWithItsSlot: an item is sold while its slot moves to another master.
func TestAnItemMovesWithItsSlot(t *testing.T) {
	t.Parallel()
	many := redistest.NewCluster(t)
	prefix := many.Prefix(t)
	ctx := t.Context()
	s := newStock(t, many.Client(t), prefix, &stock.Options{Lease: time.Hour})
	if err := s.Warm(ctx); err != nil {
		t.Fatal(err)
	}
	open(t, s, "item", 10)
	sales := func(item, when string) {
		t.Helper()
		if err := reserve(t, s, item, "ann"+when, "1", nil).Confirm(ctx); err != nil {
			t.Errorf("%s: Confirm: got %v, want no error", when, err)
		}
		if err := reserve(t, s, item, "bob"+when, "1", atOnce).Cancel(ctx); err != nil {
			t.Errorf("%s: Cancel: got %v, want no error", when, err)
		}
		if err := reserve(t, s, item, "cid"+when, "1", nil).Renew(ctx); err != nil {
			t.Errorf("%s: Renew: got %v, want no error", when, err)
		}
		for _, err := range s.Buyers(ctx, item) {
			if err != nil {
				t.Errorf("%s: Buyers: got %v, want no error", when, err)
			}
		}
	}
	sales("item", "before")
	step := 0
	many.MoveSlot(t, nameOf(prefix, "item"), func() { step++; sales("item", fmt.Sprint(step)) })
	counts(t, s, "item", 4, 3, 3)
	sales("item", "after")

	prefix = redistest.Prefix(t) // other keys share its slot
	s = newStock(t, many.Client(t), prefix, nil)
	many.HalfMoveSlot(t, nameOf(prefix, "fresh"))
	open(t, s, "fresh", 2)
	sales("fresh", "half")
	counts(t, s, "fresh", 0, 1, 1)
}

// TestEachCommandMadeToFail makes each command of each script fail in turn, in each state
// of an item. The reply is then an error, and the item is as before. An item that was
// about to be opened has no buyers.
func TestEachCommandMadeToFail(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	ctx := t.Context()
	key := nameOf(prefix, "key")
	until, future, past := time.Now().Add(time.Hour).UnixMilli(), time.Now().Add(20*time.Second).UnixMilli(), time.Now().Add(-time.Hour).UnixMilli()
	item := func(left, held, sold, first, last int, more ...any) []any {
		return append([]any{"until", until, "units", left + held + sold, "left", left, "held", held, "sold", sold,
			"first", first, "last", last, "open", "other"}, more...)
	}
	queued := func(ends int64) string { return fmt.Sprintf("%d 30000 2 ann", ends) }
	items := map[string][]any{
		"none":       nil,
		"fresh":      item(5, 0, 0, 1, 1),
		"few":        item(1, 0, 4, 1, 1),
		"held":       item(3, 2, 0, 1, 2, "b:ann", "1 2 1 me", "q:1", queued(future)),
		"held twice": item(3, 2, 0, 1, 2, "b:ann", "1 2 1 other,me", "q:1", queued(future)),
		"sold":       item(3, 0, 2, 1, 1, "b:ann", "1 2 0 me"),
		"sold twice": item(3, 0, 2, 1, 1, "b:ann", "1 2 0 other"),
		"lapsed":     item(3, 2, 0, 1, 2, "b:ann", "1 2 1 me", "q:1", queued(past)),
		"a hole":     item(1, 2, 0, 1, 3, "b:ann", "1 2 2 me", "q:2", queued(future)),
		"restocked":  item(5, 0, 0, 1, 1, "r:id", "5"),
	}
	seen := map[string]bool{}
	for _, c := range []struct {
		file string
		args []any
	}{
		{"stock_open.lua", []any{7, until, 7_200_000, "me"}},
		{"stock_reserve.lua", []any{"ann", "1", 2, 30_000, "me"}},
		{"stock_reserve.lua", []any{"ann", "1", 2, "0", "me"}},
		{"stock_reserve.lua", []any{"ann", "2", 2, 30_000, "me"}},
		{"stock_reserve.lua", []any{"bob", "1", 4, 30_000, "me"}},
		{"stock_renew.lua", []any{30_000, "ann", "1", "me"}},
		{"stock_cancel.lua", []any{"ann", "1", "me"}},
		{"stock_cancel.lua", []any{"ann", "1", ""}},
		{"stock_sweep.lua", []any{"0"}},
		{"stock_restock.lua", []any{5, "id", 1000}},
		{"stock_left.lua", nil},
		{"stock_buyers.lua", []any{"0", 100}},
		{"stock_forget.lua", nil},
	} {
		seen[c.file] = true
		for name, fields := range items {
			for _, lives := range []time.Duration{time.Hour, 0} {
				admin.Del(ctx, key)
				if fields != nil {
					admin.HSet(ctx, key, fields...)
					admin.PExpire(ctx, key, max(lives, time.Hour))
				}
				if lives == 0 {
					admin.Persist(ctx, key)
				}
				where := fmt.Sprint(c.file, c.args, ", ", name, ", ", lives)
				before := admin.HGetAll(ctx, key).Val()
				check := func(n int) {
					if after := admin.HGetAll(ctx, key).Val(); fmt.Sprint(after) != fmt.Sprint(before) {
						t.Errorf("%s: command %d failed and left %v, want %v", where, n, after, before)
					}
				}
				attempt := redistest.Attempt{Source: script.FromFS(lua.FS, c.file).Source(), Keys: []string{key}, Args: c.args}
				redistest.FailEach(t, admin, attempt, redistest.Save(t, admin, attempt.Keys), where, check)
			}
		}
	}
	admin.Del(ctx, key)
	redistest.AllFailed(t, seen, "stock_")
}

// everything makes each call of a Stock, on an item of its own.
func everything(s *stock.Stock) map[string]func(ctx context.Context) error {
	on := func(name string, call func(ctx context.Context, r *stock.Reservation) error) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.Open(ctx, name, 5, time.Now().Add(time.Hour))
			if err != nil {
				return err
			}
			r, err := s.Reserve(ctx, name, "ann", "1", nil)
			if err != nil {
				return err
			}
			err = call(ctx, r)
			_, forgot := s.Forget(ctx, name)
			return errors.Join(err, forgot)
		}
	}
	return map[string]func(ctx context.Context) error{
		"Warm":    s.Warm,
		"Reserve": on("reserve", func(context.Context, *stock.Reservation) error { return nil }),
		"Renew":   on("renew", func(ctx context.Context, r *stock.Reservation) error { return r.Renew(ctx) }),
		"Confirm": on("confirm", func(ctx context.Context, r *stock.Reservation) error { return r.Confirm(ctx) }),
		"Cancel":  on("cancel", func(ctx context.Context, r *stock.Reservation) error { return r.Cancel(ctx) }),
		"Restock": on("restock", func(ctx context.Context, _ *stock.Reservation) error { return s.Restock(ctx, "restock", "1", 1) }),
		"Left":    on("left", func(ctx context.Context, _ *stock.Reservation) error { _, err := s.Left(ctx, "left"); return err }),
		"Buyers": on("buyers", func(ctx context.Context, _ *stock.Reservation) (all error) {
			for _, err := range s.Buyers(ctx, "buyers") {
				all = errors.Join(all, err)
			}
			return all
		}),
	}
}

// TestWithoutEval makes all calls of a Stock.
func TestWithoutEval(t *testing.T) {
	t.Parallel()
	storetest.WithoutEval(t, func(rdb *redis.Client, prefix string) map[string]func(context.Context) error {
		return everything(newStock(t, rdb, prefix, nil))
	})
}

// TestEachScriptPermissionIsNeeded takes one permission after the other from the
// documented line. Each time a call fails, and its error says what is missing.
func TestEachScriptPermissionIsNeeded(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	prefix := srv.Prefix(t)
	for right := range strings.FieldsSeq("+hmget +hset +hlen +hscan +pexpire +pttl +time +del") {
		user := redistest.NewUser(t, redistest.Without(t, right), srv)
		s := newStock(t, srv.Client(t, func(o *redis.Options) { o.Username = user }), prefix, nil)
		var all error
		for _, call := range everything(s) {
			all = errors.Join(all, call(t.Context()))
		}
		if all == nil || !strings.Contains(all.Error(), "script: ") {
			t.Errorf("without %s: got %v, want an error of a script", right, all)
		}
		srv.Admin(t).FlushAll(t.Context())
	}
}

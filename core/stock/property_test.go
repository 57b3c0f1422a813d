package stock_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/redistest"
)

// TestStockEqualsModel has Stocks of two processes, several buyers and items, leases that
// end, calls that are repeated, and replies that are lost. The answers are those of the
// model. At each step, the units that are left, held and sold add up.
func TestStockEqualsModel(t *testing.T) { //nolint:tparallel // what occurred is counted when all have ended
	t.Parallel()
	var met redistest.Coverage
	t.Run("on", func(t *testing.T) {
		for name, c := range map[string]struct {
			place func(*testing.T) *place
			steps int
		}{
			"miniredis": {onMiniredis, 30_000}, "standalone 1": {onServer, 80_000}, "standalone 2": {onServer, 80_000}, "cluster": {onCluster, 14_000},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				met.Add(stories(t, c.place(t), redistest.Steps(c.steps)))
			})
		}
	})
	met.Want(t, met.Times("steps")/2000, // where there are so many steps
		"Open: true", "Open: false", "Restock: <nil>", "Restock: unknown", "Restock: quantity",
		"Reserve: true", "Reserve: again", "Reserve: sold", "Reserve: unknown", "Reserve: sold out", "Reserve: yours", "Reserve: quantity",
		"Renew: <nil>", "Renew: lapsed", "Renew: cancelled",
		"Confirm: <nil>", "Confirm: lapsed", "Confirm: unknown", "Confirm: cancelled", "Confirm: after a lapse",
		"Cancel: <nil>", "Left: <nil>", "Left: unknown", "Buyers: <nil>", "Forget: true")
	met.Want(t, met.Times("steps")/8000,
		"Renew: unknown", "Cancel: unknown", "Reserve: eight calls", "unheard Reserve", "unheard Confirm", "unheard Cancel")
	met.Want(t, redistest.Steps(200_000), "steps")
}

func stories(t *testing.T, p *place, steps int) map[string]int {
	t.Helper()
	rng, seen := redistest.Rand(t), map[string]int{}
	for seen["steps"] < steps && !t.Failed() {
		h := newStory(t, p, rng, seen)
		for range 200 {
			h.step(t)
			seen["steps"]++
		}
		h.end(t)
	}
	return seen
}

// story is one run with a few items.
type story struct {
	place  *place
	rdb    *shifted
	rng    *rand.Rand
	seen   map[string]int
	model  *model
	prefix string
	stocks []*stock.Stock
	deaf   *stock.Stock // with a short budget
	all    []*handle
	calls  int
	told   []string
}

// handle is a Reservation, and what it should know.
type handle struct {
	*stock.Reservation
	call    int
	resumed bool
	kept    bool
	err     error // the loss that Renew has found
	state   string
}

func newStory(t *testing.T, p *place, rng *rand.Rand, seen map[string]int) *story {
	t.Helper()
	p.pass(-p.hours.Load())
	h := &story{place: p, rdb: &shifted{place: p}, rng: rng, seen: seen, prefix: redistest.Prefix(t), model: &model{items: map[string]*sale{}}}
	opts := &stock.Options{Lease: leaseHours * time.Hour, Budget: time.Minute}
	for range 2 {
		h.stocks = append(h.stocks, newStock(t, h.rdb, h.prefix, opts))
	}
	h.deaf = newStock(t, h.rdb, h.prefix, &stock.Options{Lease: 90 * time.Millisecond})
	return h
}

func (h *story) stock() *stock.Stock { return h.stocks[h.rng.IntN(len(h.stocks))] }
func (h *story) item() string        { return []string{"phone", "ticket"}[h.rng.IntN(2)] }
func (h *story) buyer() string {
	return []string{"ann", "ann", "ann", "bob", "cid", "dan", "eve"}[h.rng.IntN(7)]
}
func (h *story) id() string  { return []string{"1", "1", "1", "2"}[h.rng.IntN(4)] }
func (h *story) some() int64 { return []int64{1, 1, 1, 1, 2, 3}[h.rng.IntN(6)] }

func (h *story) step(t *testing.T) {
	t.Helper()
	switch h.rng.IntN(30) {
	case 0:
		h.rdb.loses(1 + h.rng.IntN(2))
	case 1:
		if h.rng.IntN(10) == 0 {
			h.unheard(t)
		}
	}
	switch n := h.rng.IntN(40); {
	case n < 3:
		item, units := h.item(), int64(1+h.rng.IntN(6))
		want := h.model.open(item, units)
		got, err := h.stock().Open(t.Context(), item, units, time.Now().Add(300*24*time.Hour))
		h.is(t, "Open", got, want, err, nil)
	case n < 5:
		item, id, units := h.item(), fmt.Sprint(h.rng.IntN(3)), int64(1+h.rng.IntN(2))
		for range 1 + h.rng.IntN(2) {
			h.is(t, "Restock", 0, 0, h.stock().Restock(t.Context(), item, id, units), h.model.restock(item, id, units))
		}
	case n < 17:
		h.reserve(t)
	case n < 29 && len(h.all) > 0:
		r := h.all[max(0, len(h.all)-1-h.rng.IntN(8))]
		act := h.rng.IntN(4)
		for range 1 + h.rng.IntN(3)/2 {
			switch act {
			case 0:
				h.renew(t, r)
			case 1, 2:
				h.confirm(t, r)
			case 3:
				h.cancel(t, r)
			}
		}
	case n < 32:
		h.left(t, h.item())
	case n == 32:
		h.buyers(t, h.item())
	case n == 33:
		if h.rng.IntN(4) == 0 {
			item := h.item()
			want := h.model.at(item) != nil
			delete(h.model.items, item)
			h.rdb.loses(0)
			got, err := h.stock().Forget(t.Context(), item)
			h.is(t, "Forget", got, want, err, nil)
		}
	case n < 38:
		hours := 1 + h.rng.Int64N(leaseHours/2)
		h.told = append(h.told, fmt.Sprintf("%d hours pass", hours))
		h.model.now += hours
		h.place.pass(hours)
	}
	h.adds(t)
	if t.Failed() {
		t.Fatalf("after\n%s", strings.Join(h.told[max(0, len(h.told)-40):], "\n"))
	}
}

// is compares an answer with the model's.
func (h *story) is(t *testing.T, what string, got, want any, err, wanted error) {
	t.Helper()
	h.told = append(h.told, fmt.Sprintf("%s: %v, %v", what, got, err))
	if got != want || !errors.Is(err, wanted) || wanted == nil && err != nil {
		t.Errorf("%s: got %v, %v, want %v, %v", what, got, err, want, wanted)
	}
	name := "<nil>"
	switch {
	case err != nil:
		name = map[error]string{
			stock.ErrUnknown: "unknown", stock.ErrSoldOut: "sold out", stock.ErrYours: "yours",
			stock.ErrQuantity: "quantity", stock.ErrCalls: "eight calls", stock.ErrLapsed: "lapsed", stock.ErrCancelled: "cancelled",
		}[wanted]
	case got == true || got == false:
		name = fmt.Sprint(got)
	}
	h.seen[what+": "+name]++
}

func (h *story) reserve(t *testing.T) {
	t.Helper()
	item, buyer, id, opts := h.item(), h.buyer(), h.id(), &stock.ReserveOptions{
		Quantity: h.some(), Confirm: h.rng.IntN(3) == 0, Keep: h.rng.IntN(4) == 0,
	}
	if old := h.model.at(item); old != nil && old.buyers[buyer] != nil && h.rng.IntN(2) == 0 {
		id, opts.Quantity = old.buyers[buyer].id, old.buyers[buyer].quantity
	}
	h.told = append(h.told, fmt.Sprintf("%s, %s, %s, %+v:", item, buyer, id, *opts))
	h.calls++
	r := &handle{call: h.calls, kept: opts.Keep}
	if h.rng.IntN(6) == 0 {
		r.resumed = true
		r.Reservation, _ = h.stock().Resume(item, buyer, id, opts)
		h.all = append(h.all, r)
		return
	}
	how := leasing
	if opts.Confirm {
		how = atOnceTaking
	}
	again, sold, want := h.model.take(item, buyer, id, opts.Quantity, how, h.calls)
	var err error
	r.Reservation, err = h.stock().Reserve(t.Context(), item, buyer, id, opts)
	h.is(t, "Reserve", r.Reservation != nil, want == nil, err, want)
	if want == nil && err == nil {
		if r.Again() != again || r.Confirmed() != sold {
			t.Errorf("Reserve: got again %t, sold %t, want %t, %t", r.Again(), r.Confirmed(), again, sold)
		}
		if again {
			h.seen["Reserve: again"]++
		}
		if sold {
			r.state = "sold"
			h.seen["Reserve: sold"]++
		}
		h.all = append(h.all, r)
	}
}

// known returns the answer that a Reservation gives without asking Redis.
func (r *handle) known(to string) (err error, known bool) {
	switch {
	case r.state == to:
		return nil, true
	case r.state == "cancelled":
		return stock.ErrCancelled, true
	case r.state == "lapsed" && to != "cancelled":
		return stock.ErrLapsed, true
	}
	return nil, false
}

func (h *story) renew(t *testing.T, r *handle) {
	t.Helper()
	want, known := r.known("sold")
	if !known && r.err != nil {
		want, known = r.err, true
	}
	if !known {
		call := r.call
		if r.resumed {
			call = everybody
		}
		var sold bool
		sold, want = h.model.renew(r.Item(), r.Buyer(), r.ID(), call)
		if sold {
			r.state = "sold"
		}
		if !r.resumed && !r.kept {
			r.err = want
		}
	}
	h.is(t, "Renew", 0, 0, r.Renew(t.Context()), want)
}

func (h *story) confirm(t *testing.T, r *handle) {
	t.Helper()
	want, known := r.known("sold")
	if !known {
		want = h.confirms(r)
	}
	h.is(t, "Confirm", 0, 0, r.Confirm(t.Context()), want)
}

// confirms carries out a Confirm that asks Redis.
func (h *story) confirms(r *handle) error {
	s := h.model.at(r.Item())
	fresh := s != nil && s.buyers[r.Buyer()] == nil
	_, _, want := h.model.take(r.Item(), r.Buyer(), r.ID(), r.Quantity(), confirming, r.call)
	switch {
	case want == nil:
		r.state = "sold"
		if fresh {
			h.seen["Confirm: after a lapse"]++
		}
	case errors.Is(want, stock.ErrSoldOut), errors.Is(want, stock.ErrYours):
		r.state, want = "lapsed", stock.ErrLapsed
	}
	return want
}

func (h *story) cancel(t *testing.T, r *handle) {
	t.Helper()
	want, known := r.known("cancelled")
	if !known {
		want = h.cancels(r)
	}
	if r.resumed {
		h.rdb.loses(0)
	}
	h.is(t, "Cancel", 0, 0, r.Cancel(t.Context()), want)
}

func (h *story) cancels(r *handle) error {
	call := r.call
	if r.resumed {
		call = everybody
	}
	r.state = "cancelled"
	return h.model.cancel(r.Item(), r.Buyer(), r.ID(), call)
}

// unheard lets a call be carried out, and loses its replies for as long as it asks. A
// reservation is then undone. A confirmation or cancellation takes effect.
func (h *story) unheard(t *testing.T) {
	t.Helper()
	h.rdb.loses(0)
	item, buyer, id := h.item(), h.buyer(), h.id()
	s := h.model.at(item)
	if s != nil && s.buyers[buyer] != nil && !s.buyers[buyer].sold {
		return // a sale would sell it, answered or not
	}
	h.calls++
	what, call := []string{"Reserve", "Confirm", "Cancel"}[h.rng.IntN(3)], func() error {
		_, err := h.deaf.Reserve(t.Context(), item, buyer, id, atOnce)
		return err
	}
	how := atOnceTaking
	if what == "Confirm" {
		how = confirming
	}
	_, _, err := h.model.take(item, buyer, id, 1, how, h.calls)
	switch {
	case what == "Confirm":
		own, _ := h.deaf.Resume(item, buyer, id, nil)
		call = func() error { return own.Confirm(t.Context()) }
	case what == "Cancel" && err == nil:
		own, err := h.deaf.Reserve(t.Context(), item, buyer, id, atOnce)
		if err == nil {
			call = func() error { return own.Cancel(t.Context()) }
		}
		fallthrough
	case err == nil:
		_ = h.model.cancel(item, buyer, id, h.calls)
	}
	h.told = append(h.told, fmt.Sprintf("an unheard %s of %s by %s as %s", what, item, buyer, id))
	h.rdb.loses(-1)
	err = call()
	h.rdb.loses(0)
	if err == nil {
		t.Errorf("%s without an answer: got no error, want one", what)
	}
	left(t, h.deaf)
	h.seen["unheard "+what]++
}

func (h *story) left(t *testing.T, item string) {
	t.Helper()
	var want stock.Level
	var wanted error
	if s := h.model.at(item); s == nil {
		wanted = stock.ErrUnknown
	} else {
		want = stock.Level{Units: s.units, Left: s.left, Held: s.held(), Sold: s.units - s.left - s.held()}
	}
	got, err := h.stock().Left(t.Context(), item)
	got.Lifetime = 0
	h.is(t, "Left", got, want, err, wanted)
}

func (h *story) buyers(t *testing.T, item string) {
	t.Helper()
	want, got := map[string]string{}, map[string]string{}
	s := h.model.at(item)
	if s == nil {
		return
	}
	for name, p := range s.buyers {
		want[name] = fmt.Sprint(p.id, p.quantity, p.sold)
	}
	for b, err := range h.stock().Buyers(t.Context(), item) {
		if err != nil {
			t.Errorf("Buyers: got %v, want no error", err)
		}
		got[b.Buyer] = fmt.Sprint(b.ID, b.Quantity, b.Sold)
		if b.Sold != (b.Lease == 0) || b.Lease < 0 || b.Lease > leaseHours*time.Hour {
			t.Errorf("%s has it for %v, want a lease up to %v, or none if it is sold",
				b.Buyer, b.Lease, leaseHours*time.Hour)
		}
	}
	h.is(t, "Buyers", 0, 0, nil, nil)
	if !maps.Equal(got, want) {
		t.Errorf("the buyers of %s are %v, want %v", item, got, want)
	}
}

// adds checks the record in Redis. It adds up, the model has sold what is sold, and units
// whose lease may have ended are either held or left.
func (h *story) adds(t *testing.T) {
	t.Helper()
	if len(h.model.items) == 0 {
		return
	}
	pipe := h.place.admin.Pipeline()
	replies := map[string]*redis.SliceCmd{}
	for item := range h.model.items {
		replies[item] = pipe.HMGet(t.Context(), nameOf(h.prefix, item), "units", "left", "held", "sold")
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	for item, reply := range replies {
		var n [4]int64
		for i, v := range reply.Val() {
			_, _ = fmt.Sscan(fmt.Sprint(v), &n[i])
		}
		s := h.model.at(item)
		sold := s.units - s.left - s.held()
		if n[0] != s.units || n[1]+n[2]+n[3] != s.units || n[3] != sold || n[1] < 0 || n[1] > s.left {
			t.Errorf("%s: got %v units, left, held and sold, want %d, %d, %d, %d of the model",
				item, n, s.units, s.left, s.held(), sold)
		}
	}
}

// end checks the last state, and leaves nothing behind.
func (h *story) end(t *testing.T) {
	t.Helper()
	h.rdb.loses(0)
	for item := range h.model.items {
		h.left(t, item)
		h.buyers(t, item)
		if ttl := h.place.admin.PTTL(t.Context(), nameOf(h.prefix, item)).Val(); ttl <= 0 || ttl > 301*24*time.Hour {
			t.Errorf("%s: got %v to live, want up to %v", item, ttl, 301*24*time.Hour)
		}
	}
	for _, r := range h.all {
		_ = r.Cancel(t.Context()) // also its timer
	}
	h.rdb.ends()
	for item := range h.model.items {
		h.place.admin.Del(t.Context(), nameOf(h.prefix, item))
	}
}

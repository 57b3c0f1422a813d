package gate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/redistest"
)

// A success leaves the unit held, and anything else gives it back.
func TestReserveKeeps(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context, *stock.Reservation) error { return nil }
	for name, c := range map[string]struct {
		decide     func(context.Context, *stock.Reservation) error
		gone       bool // the client, before the answer
		reply      *gate.Reply
		held, sold int64
	}{
		"202":                   {nothing, false, answered(202), 1, 0},
		"399":                   {nothing, false, answered(399), 1, 0},
		"taken over":            {nothing, false, &gate.Reply{Partial: true}, 1, 0},
		"400":                   {nothing, false, answered(400), 0, 0},
		"500":                   {nothing, false, answered(500), 0, 0},
		"a panic":               {nothing, false, nil, 0, 0},
		"refused further in":    {nothing, false, &gate.Reply{Status: 200, Refused: true}, 0, 0},
		"nobody hears":          {nothing, true, answered(202), 1, 0},
		"gave up":               {nothing, true, answered(200), 0, 0},
		"gave up, and panicked": {nothing, true, nil, 0, 0},
		"paid at once":          {confirm, false, answered(201), 0, 1},
		"paid, and fails":       {confirm, false, answered(500), 0, 1},
		"cancelled by itself":   {cancel, false, answered(200), 0, 0},
	} {
		s, _ := sale(t, 1)
		var h hook
		ctx, leave := context.WithCancel(t.Context())
		r := buying("phone", "ann")
		r.ctx = ctx
		p := reserving(s, &gate.ReserveOptions{Keep: true, OnError: h.hear}).Enter(r)
		own, ok := stock.FromContext(p.Context)
		if status(p) != 200 || !ok || own.Confirmed() || own.Err() != nil {
			t.Fatalf("%s: got %+v with the reservation %+v, want it admitted, with a unit that is held", name, p, own)
		}
		counts(t, s, 0, 1, 0)
		if err := c.decide(p.Context, own); err != nil {
			t.Fatal(err)
		}
		if c.gone {
			leave()
		}
		p.Leave(c.reply)
		leave()
		if l, err := s.Left(t.Context(), "phone"); err != nil || l.Held != c.held || l.Sold != c.sold {
			t.Errorf("%s: got %+v, %v, want %d held and %d sold", name, l, err, c.held, c.sold)
		}
		if err := h.take(); err != nil {
			t.Errorf("%s: the hook was told %v, want nothing", name, err)
		}
	}
}

// A kept unit is held for one lease from when the request was admitted, whatever happens
// to Redis and the process at the time of the answer.
func TestReserveKeepsForALease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		resold bool
		want   error
		sold   int64
	}{"the payment finds a unit": {false, nil, 1}, "the payment finds none": {true, stock.ErrLapsed, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := redistest.Bubble(t)
				rdb := &redistest.CutClient{Client: redistest.BubbleClient(t, m)}
				s := opened(t, rdb, "", 1)
				var h hook
				p := reserving(s, &gate.ReserveOptions{Keep: true, OnError: h.hear}).Enter(buying("phone", "ann"))
				own, _ := stock.FromContext(p.Context)
				time.Sleep(s.Lease() / 2)
				rdb.Cut("refused")
				p.Leave(answered(202))
				rdb.Mend()
				if err := h.take(); err != nil {
					t.Errorf("the hook was told %v, want nothing", err)
				}
				time.Sleep(s.Lease()/2 - time.Millisecond)
				counts(t, s, 0, 1, 0)
				time.Sleep(time.Millisecond)
				counts(t, s, 1, 0, 0)
				if c.resold {
					reserving(s, nil).Enter(buying("phone", "bob")).Leave(answered(201))
				}
				if err := paid(t, s, own); !errors.Is(err, c.want) {
					t.Errorf("a payment after the lease: got %v, want %v", err, c.want)
				}
				counts(t, s, 0, 0, 1)
			})
		})
	}
}

// resumed is the reservation that a callback makes from an order.
func resumed(t *testing.T, s *stock.Stock, order *stock.Reservation) *stock.Reservation {
	t.Helper()
	own, err := s.Resume(order.Item(), order.Buyer(), order.ID(), &stock.ReserveOptions{Quantity: order.Quantity()})
	if err != nil {
		t.Fatal(err)
	}
	return own
}

func paid(t *testing.T, s *stock.Stock, order *stock.Reservation) error {
	t.Helper()
	return resumed(t, s, order).Confirm(t.Context())
}

func unpaid(t *testing.T, s *stock.Stock, order *stock.Reservation) error {
	t.Helper()
	return resumed(t, s, order).Cancel(t.Context())
}

// This is what a process that knows only the order can do with a kept unit.
func TestReserveKeptIsPaid(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, _ string) {
		type scene struct {
			*testing.T
			shop, bank *stock.Stock // of two processes
			order      *stock.Reservation
			buy        func(buyer, id string) (gate.Pass, *stock.Reservation)
		}
		const units = 2 // of three; ann wants two at a time, bob one
		bob := func(x *scene) {
			if p, _ := x.buy("bob", "1"); p.Reply != nil {
				x.Errorf("bob got %d, want a unit", p.Reply.Status)
			} else {
				p.Leave(answered(202))
			}
		}
		is := func(x *scene, got, want error) {
			x.Helper()
			if !errors.Is(got, want) || want == nil && got != nil {
				x.Errorf("got %v, want %v", got, want)
			}
		}
		for name, c := range map[string]struct {
			act              func(x *scene)
			left, held, sold int64
		}{
			"not paid": {func(*scene) {}, 1, 2, 0},
			"paid":     {func(x *scene) { is(x, paid(x.T, x.bank, x.order), nil) }, 1, 0, 2},
			"paid, and told twice": {func(x *scene) {
				is(x, errors.Join(paid(x.T, x.bank, x.order), paid(x.T, x.bank, x.order)), nil)
			}, 1, 0, 2},
			"cancelled": {func(x *scene) { is(x, unpaid(x.T, x.bank, x.order), nil) }, 3, 0, 0},
			"cancelled, and told twice": {func(x *scene) {
				is(x, errors.Join(unpaid(x.T, x.bank, x.order), unpaid(x.T, x.bank, x.order)), nil)
			}, 3, 0, 0},
			"cancelled, then paid": {func(x *scene) {
				is(x, errors.Join(unpaid(x.T, x.bank, x.order), paid(x.T, x.bank, x.order)), nil)
			}, 1, 0, 2},
			"cancelled, then too few are left": {func(x *scene) {
				is(x, unpaid(x.T, x.bank, x.order), nil)
				bob(x)
				if p, _ := x.buy("cid", "1"); p.Reply != nil {
					x.Errorf("cid got %d, want a unit", p.Reply.Status)
				}
				is(x, paid(x.T, x.bank, x.order), stock.ErrLapsed)
			}, 1, 2, 0},
			"paid, then cancelled": {func(x *scene) {
				is(x, errors.Join(paid(x.T, x.bank, x.order), unpaid(x.T, x.bank, x.order)), nil)
			}, 3, 0, 0},
			"paid when the buyer has bought anew": {func(x *scene) {
				is(x, unpaid(x.T, x.bank, x.order), nil)
				if p, _ := x.buy("ann", "2"); p.Reply != nil {
					x.Errorf("ann got %d, want the units", p.Reply.Status)
				}
				is(x, paid(x.T, x.bank, x.order), stock.ErrLapsed)
			}, 1, 2, 0},
			"the buyer comes again": {func(x *scene) {
				p, own := x.buy("ann", "1")
				if p.Reply != nil || !own.Again() || own.ID() != x.order.ID() {
					x.Fatalf("got %+v with %+v, want the same reservation again", p.Reply, own)
				}
				p.Leave(answered(202))
				is(x, paid(x.T, x.bank, x.order), nil)
			}, 1, 0, 2},
			"the buyer comes again, and fails": {func(x *scene) {
				p, _ := x.buy("ann", "1")
				p.Leave(answered(500))
			}, 1, 2, 0},
			"the buyer comes again, and it is cancelled": {func(x *scene) {
				p, _ := x.buy("ann", "1")
				p.Leave(answered(202))
				is(x, unpaid(x.T, x.bank, x.order), nil)
			}, 3, 0, 0},
			"the buyer comes again under another id": {func(x *scene) {
				if p, _ := x.buy("ann", "2"); status(p) != 409 || !strings.Contains(string(p.Reply.Body), "#already-yours") {
					x.Errorf("got %+v, want 409 already-yours", p.Reply)
				}
			}, 1, 2, 0},
			"the buyer comes again when it is paid": {func(x *scene) {
				is(x, paid(x.T, x.bank, x.order), nil)
				p, own := x.buy("ann", "1")
				if p.Reply != nil || !own.Confirmed() {
					x.Fatalf("got %+v with %+v, want the reservation, which is sold", p.Reply, own)
				}
				p.Leave(answered(200))
			}, 1, 0, 2},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				at := redistest.Prefix(t)
				x := &scene{T: t, shop: opened(t, rdb, at, units+1), bank: opened(t, rdb, at, units+1)}
				g := reserving(x.shop, &gate.ReserveOptions{
					Keep: true, ID: gate.ByHeader("X-Order"),
					Quantity: func(r gate.Request) (int64, error) {
						if r.Header("X-Buyer")[0] == "ann" {
							return units, nil
						}
						return 1, nil
					},
				})
				x.buy = func(buyer, id string) (gate.Pass, *stock.Reservation) {
					r := buying("phone", buyer)
					r.header["X-Order"] = []string{id}
					p := g.Enter(r)
					if p.Reply != nil {
						return p, nil
					}
					own, _ := stock.FromContext(p.Context)
					return p, own
				}
				var p gate.Pass
				p, x.order = x.buy("ann", "1")
				p.Leave(answered(202))
				c.act(x)
				counts(t, x.bank, c.left, c.held, c.sold)
			})
		}
	}, redistest.OnStandalone, redistest.OnCluster)
}

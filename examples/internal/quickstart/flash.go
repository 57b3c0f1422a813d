package quickstart

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/stock"
)

const (
	buyerHeader = "X-Buyer"
	flashName   = "flash" // of its keys
	flashItem   = "phone"
	flashUnits  = 100
	flashLasts  = 24 * time.Hour
	payWithin   = 15 * time.Minute
)

// flashRoutes sell at once, hold for a payment, and tell what is left.
func flashRoutes(w *wiring, a *account) []Route {
	s, err := stock.New(w.redis, flashName, &stock.Options{
		Budget: 4 * w.budget, Lease: payWithin + time.Minute, // a callback takes a while
	})
	if w.failed(err) {
		return nil
	}
	a.stock = s
	buy := gate.Reserve(s, gate.ByParam("item"), gate.ByHeader(buyerHeader),
		&gate.ReserveOptions{Confirm: true, OnError: report(slog.Default())})
	return []Route{
		{
			method: "POST", Path: "/flash/{item}", Gate: buy, Work: sold,
			says: fmt.Sprintf("%d of the item %s, one for each %s", flashUnits, flashItem, buyerHeader),
		},
		{
			method: "POST", Path: "/flash/{item}/orders", Work: a.order,
			Gate: gate.Reserve(s, gate.ByParam("item"), gate.ByHeader(buyerHeader),
				&gate.ReserveOptions{Keep: true, OnError: report(slog.Default())}),
			says: "the same, held until Alipay's callback says that it is paid",
		},
		{Path: "/flash/{item}", Gate: whole{shelf{s}}, says: "how many are left, and sold"},
	}
}

// open puts the phones in, unless they are there. A shop does that once, and not at
// each start of a process: if Redis had lost its data, that would sell phones again.
func (w *wiring) open(ctx context.Context) error {
	s, err := stock.New(w.redis, flashName, &stock.Options{Budget: demoBudget})
	if err != nil {
		return err
	}
	if _, err := s.Open(ctx, flashItem, flashUnits, time.Now().Add(flashLasts)); err != nil {
		return fmt.Errorf("the item %s could not be opened: %w", flashItem, err)
	}
	return nil
}

// sold answers what the buyer has from now on.
func sold(ctx context.Context, _ Asked) Result {
	own, ok := stock.FromContext(ctx)
	if !ok {
		return text(500, "nothing was reserved\n")
	}
	return page(201, map[string]any{"item": own.Item(), "quantity": own.Quantity()})
}

// account has the orders of this process. A shop has them in its database, and so
// knows of those that another process made.
type account struct {
	stock  *stock.Stock
	orders sync.Map // *stock.Reservation by the order's number
}

// order answers what is to be paid, and until when.
func (a *account) order(ctx context.Context, _ Asked) Result {
	own, ok := stock.FromContext(ctx)
	if !ok {
		return text(500, "nothing was reserved\n")
	}
	number := rand.Text()
	a.orders.Store(number, own)
	return page(202, map[string]any{"order": number, "pay_until": time.Now().Add(payWithin)})
}

// settle sells what an order holds, when Alipay says that it is paid.
func (a *account) settle(ctx context.Context, e *callback.Event) error {
	form, err := url.ParseQuery(string(e.Payload))
	if err != nil {
		return err
	}
	found, ok := a.orders.Load(e.Order)
	if s := form.Get("trade_status"); !ok || form.Has("gmt_refund") || s != "TRADE_SUCCESS" && s != "TRADE_FINISHED" {
		return nil
	}
	o := found.(*stock.Reservation)
	own, err := a.stock.Resume(o.Item(), o.Buyer(), o.ID(), nil)
	if err != nil {
		return err
	}
	err = own.Confirm(ctx)
	if errors.Is(err, stock.ErrLapsed) {
		return callback.Reject(err) // a shop refunds it
	}
	return err
}

// shelf shows an item.
type shelf struct{ stock *stock.Stock }

func (s shelf) Serve(r gate.Request) gate.Reply {
	level, err := s.stock.Left(r.Context(), r.Param("item"))
	switch {
	case errors.Is(err, stock.ErrUnknown), errors.Is(err, stock.ErrItem):
		return answering(contentProblem, page(404, map[string]any{
			"type": gate.TypeStock + "unknown-item", "title": "There is no such item", "status": 404,
		}))
	case err != nil:
		report(slog.Default())(r, err)
		return answering(contentProblem, page(503, map[string]any{"title": "Service Unavailable", "status": 503}))
	}
	return answering(contentJSON, page(200, map[string]any{
		"units": level.Units, "left": level.Left, "held": level.Held, "sold": level.Sold,
	}))
}

// answering is a result as an endpoint sends it.
func answering(contentType string, r Result) gate.Reply {
	return gate.Reply{Status: r.Status, Body: []byte(r.Text), Header: []gate.Field{
		{Name: "Content-Type", Value: contentType}, {Name: "Cache-Control", Value: "no-store"},
	}}
}

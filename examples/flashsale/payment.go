package main

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"sync"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
)

// shop sells phones at once, or has them held until they are paid, as its gate says.
type shop struct {
	phones *stock.Stock
	gate   gate.Gate
	paid   gate.Endpoint
	orders sync.Map // by their number. A shop has them in its database
}

// order is what there must be of an order when its payment comes.
type order struct{ item, buyer, id string }

func newShop(rdb script.Client, phones *stock.Stock, g gate.Gate) (*shop, error) {
	s := &shop{phones: phones, gate: g}
	p := callback.Alipay()
	guard, err := idempotency.New(rdb, phones.Name(), idempotency.Retry{}, &idempotency.Options{Retention: p.Retention})
	if err != nil {
		return nil, err
	}
	s.paid, err = callback.New(p, guard, verify, s.settle, nil)
	return s, err
}

// buy answers a buyer who has a unit: that it is sold, or which order is to be paid.
func (s *shop) buy(ctx context.Context) (status int, number string) {
	own, ok := stock.FromContext(ctx)
	if !ok || own.Confirmed() {
		return http.StatusCreated, ""
	}
	number = rand.Text()
	s.orders.Store(number, order{own.Item(), own.Buyer(), own.ID()})
	return http.StatusAccepted, number
}

// settle sells what an order holds, when it is paid. Alipay tells also of a payment that is
// awaited or was closed, and of refunds.
func (s *shop) settle(ctx context.Context, e *callback.Event) error {
	form, err := url.ParseQuery(string(e.Payload))
	if s := form.Get("trade_status"); err != nil || form.Has("gmt_refund") || s != "TRADE_SUCCESS" && s != "TRADE_FINISHED" {
		return err
	}
	found, ok := s.orders.Load(e.Order)
	if !ok {
		return callback.Reject(errors.New("there is no such order"))
	}
	o := found.(order)
	own, err := s.phones.Resume(o.item, o.buyer, o.id, nil)
	if err != nil {
		return err
	}
	err = own.Confirm(ctx)
	if errors.Is(err, stock.ErrLapsed) {
		return callback.Reject(err) // a shop refunds it
	}
	return err
}

const signature = "X-Demo-Signature"

// verify believes who says "ok". A shop checks the provider's signature.
func verify(_ context.Context, d *callback.Delivery) ([]byte, error) {
	if d.Header.Get(signature) != "ok" {
		return nil, errors.New("it is not signed")
	}
	return d.Body, nil
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"sync"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
)

// callbackRoutes receive what payment providers send, and tell what was booked.
func callbackRoutes() []route {
	b := &books{}
	return []route{
		{method: "POST", path: "/callbacks/alipay", preset: callback.Alipay, handle: b.book},
		{method: "POST", path: "/callbacks/wechat", preset: callback.WeChatPay, handle: b.book},
		{method: "POST", path: "/callbacks/stripe", preset: callback.Stripe, handle: b.book},
		{path: "/ledger", work: b.ledger},
	}
}

// whole is an endpoint as a gate that lets no request pass, since all routes of the
// quickstart are mounted alike.
type whole struct{ gate.Endpoint }

func (w whole) Enter(r gate.Request) gate.Pass {
	reply := w.Serve(r)
	return gate.Pass{Reply: &reply}
}

// callback makes the endpoint of a provider, which runs no work.
func (w wiring) callback(r route) (gate.Gate, error) {
	p := r.preset()
	g, err := idempotency.New(w.redis, r.name(), &idempotency.Options{
		Budget: 4 * w.budget, Retention: p.Keep,
	})
	if err != nil {
		return nil, err
	}
	e, err := callback.New(p, g, demoVerify, r.handle, &callback.Options{OnError: func(_ context.Context, err error) {
		slog.Default().Error("an event was not acknowledged", "provider", p.Name, "why", kind(err))
	}})
	return whole{e}, err
}

const signatureHeader = "X-Demo-Signature"

// demoVerify believes whoever says so, where a shop checks the provider's signature
// and decrypts what WeChat Pay has encrypted.
func demoVerify(_ context.Context, d *callback.Delivery) ([]byte, error) {
	if lines := d.Header.Values(signatureHeader); len(lines) != 1 || lines[0] != "ok" {
		return nil, errors.New("it is not signed")
	}
	return d.Body, nil
}

// books are those of this process. A shop has them in its database, and so knows of
// what another process booked.
type books struct {
	mu     sync.Mutex
	booked map[string]int
}

func (b *books) book(_ context.Context, e *callback.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.booked == nil {
		b.booked = map[string]int{}
	}
	b.booked[cmp.Or(e.Order, e.DeliveryID)]++
	return nil
}

// ledger answers how often something was booked for each order.
func (b *books) ledger(context.Context, asked) result {
	b.mu.Lock()
	booked := map[string]int{}
	maps.Copy(booked, b.booked)
	b.mu.Unlock()
	page, err := json.Marshal(booked)
	if err != nil {
		return text(500, "the ledger cannot be read\n")
	}
	return result{status: 200, contentType: contentJSON, text: string(page) + "\n"}
}

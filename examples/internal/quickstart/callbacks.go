package quickstart

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
)

// callbackRoutes receive what payment providers send, and tell what was booked.
func callbackRoutes(w *wiring, a *account) []Route {
	b := &books{booked: map[string]int{}}
	receive := func(name string, p callback.Preset, handle callback.Handler) Route {
		return Route{
			method: "POST", Path: "/callbacks/" + name, Gate: w.callback("callbacks-"+name, p, handle),
			says: "each event is booked once, and acknowledged then",
		}
	}
	return []Route{
		receive("alipay", callback.Alipay(), func(ctx context.Context, e *callback.Event) error {
			if err := a.settle(ctx, e); err != nil {
				return err
			}
			return b.book(ctx, e)
		}),
		receive("wechat", callback.WeChatPay(), b.book),
		receive("stripe", callback.Stripe(), b.book),
		{Path: "/ledger", Gate: gate.Chain(), Work: b.ledger, says: "how often each order was booked by this process"},
	}
}

// callback makes the endpoint of a provider, which runs no work.
func (w *wiring) callback(name string, p callback.Preset, handle callback.Handler) gate.Gate {
	g, err := idempotency.New(w.redis, name, idempotency.Retry{}, &idempotency.Options{Budget: 4 * w.budget, Retention: p.Retention})
	if w.failed(err) {
		return nil
	}
	e, err := callback.New(p, g, demoVerify, handle, &callback.Options{OnError: func(_ context.Context, err error) {
		slog.Default().Error("an event was not acknowledged", "provider", p.Name, "why", kind(err))
	}})
	w.failed(err)
	return whole{e}
}

// whole is an endpoint as a gate that lets no request pass, since all routes of the
// quickstart are mounted alike.
type whole struct{ gate.Endpoint }

func (w whole) Enter(r gate.Request) gate.Pass {
	reply := w.Serve(r)
	return gate.Pass{Reply: &reply}
}

const signatureHeader = "X-Demo-Signature"

// demoVerify believes a request that says "ok". A shop checks the provider's
// signature here, and decrypts what WeChat Pay has encrypted.
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
	b.booked[cmp.Or(e.Order, e.DeliveryID)]++
	return nil
}

// ledger answers how often something was booked for each order.
func (b *books) ledger(context.Context, Asked) Result {
	b.mu.Lock()
	defer b.mu.Unlock()
	return page(200, b.booked)
}

package gatetest

import (
	"context"
	"iter"
	"net"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/script"
)

// reporting returns a driver that tells t what is missing of d.
func (d Driver) reporting(t testing.TB) Driver {
	if d.Key == nil {
		d.Key = func(string) gate.Key {
			t.Error("gatetest: the Driver has no Key, want that of the adapter")
			return func(gate.Request) (string, error) { return "", ErrNoHeader }
		}
	}
	if d.Native == nil {
		d.Native = func(gate.Request, string) (string, bool) {
			t.Error("gatetest: the Driver has no Native, want the Context of the adapter")
			return "", false
		}
	}
	if d.Redis == nil {
		d.Redis = func(t testing.TB) script.Client {
			t.Fatal("gatetest: the Driver has no Redis, want one for locks, guards and stock")
			return nil
		}
	}
	if pooled := d.Pooled; pooled != nil {
		d.Pooled = func(x Exchange) context.Context {
			if told, ok := x.(told); ok {
				x = told.Exchange
			}
			return pooled(x)
		}
	}
	serve := d.Serve
	d.Serve = func(own testing.TB, app App) string { return serve(own, app.told(own)) }
	return d
}

// told returns the application with handlers that tell t if a method of the Exchange
// panics. Otherwise the Driver recovers that, and it looks like a panic of the handler.
func (a App) told(t testing.TB) App {
	around := func(ms []Middleware) (out []Middleware) {
		for _, m := range ms {
			out = append(out, func(x Exchange, next func() error) error { return m(told{x, t}, next) })
		}
		return out
	}
	a.Around = around(a.Around)
	if onError := a.OnError; onError != nil {
		a.OnError = func(x Exchange, err error) { onError(told{x, t}, err) }
	}
	routes := a.Routes
	a.Routes = nil
	for _, r := range routes {
		r.Around = around(r.Around)
		if h := r.Handler; h != nil {
			r.Handler = func(x Exchange) error { return h(told{x, t}) }
		}
		a.Routes = append(a.Routes, r)
	}
	return a
}

// told is an Exchange that tells t which of its methods panics.
type told struct {
	Exchange
	t testing.TB
}

func (x told) panics(method string) {
	if v := recover(); v != nil {
		x.t.Errorf("gatetest: Exchange.%s panicked, or is not written yet: %v", method, v)
		panic(v)
	}
}

func (x told) Context() context.Context {
	defer x.panics("Context")
	return x.Exchange.Context()
}

func (x told) SetContext(ctx context.Context) {
	defer x.panics("SetContext")
	x.Exchange.SetContext(ctx)
}

func (x told) Param(name string) string {
	defer x.panics("Param")
	return x.Exchange.Param(name)
}

func (x told) Query(name string) string {
	defer x.panics("Query")
	return x.Exchange.Query(name)
}

func (x told) Value(key string) any {
	defer x.panics("Value")
	return x.Exchange.Value(key)
}

func (x told) SetValue(key string, value any) {
	defer x.panics("SetValue")
	x.Exchange.SetValue(key, value)
}

func (x told) SetPeer(address string) {
	defer x.panics("SetPeer")
	x.Exchange.SetPeer(address)
}

func (x told) Rewrite(path string) {
	defer x.panics("Rewrite")
	x.Exchange.Rewrite(path)
}

func (x told) Body() ([]byte, error) {
	defer x.panics("Body")
	return x.Exchange.Body()
}

func (x told) ContentLength() int64 {
	defer x.panics("ContentLength")
	return x.Exchange.ContentLength()
}

func (x told) SetRequestHeader(name, value string) {
	defer x.panics("SetRequestHeader")
	x.Exchange.SetRequestHeader(name, value)
}

func (x told) DelRequestHeader(name string) {
	defer x.panics("DelRequestHeader")
	x.Exchange.DelRequestHeader(name)
}

func (x told) SetHeader(name, value string) {
	defer x.panics("SetHeader")
	x.Exchange.SetHeader(name, value)
}

func (x told) AddHeader(name, value string) {
	defer x.panics("AddHeader")
	x.Exchange.AddHeader(name, value)
}

func (x told) Send(status int, body string) error {
	defer x.panics("Send")
	return x.Exchange.Send(status, body)
}

func (x told) Stream(status int, chunks iter.Seq[string]) error {
	defer x.panics("Stream")
	return x.Exchange.Stream(status, chunks)
}

func (x told) Hijack(talk func(net.Conn)) error {
	defer x.panics("Hijack")
	return x.Exchange.Hijack(talk)
}

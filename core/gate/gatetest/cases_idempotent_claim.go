package gatetest

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
)

// idempotentContext: the handler's context is that of the claim, with the values of the
// request's context. It is removed from the request afterwards.
func idempotentContext(t *testing.T, d Driver) {
	const key contextKey = "outside"
	g := newGuard(t, d, idempotency.Options{})
	outside := func(x Exchange, next func() error) error {
		x.SetContext(context.WithValue(x.Context(), key, "kept"))
		before := x.Context()
		defer func() {
			if _, found := idempotency.FromContext(x.Context()); found || x.Context() != before {
				t.Error("the claim's context stays on the request, want the one from before")
			}
		}()
		return next()
	}
	left := make(chan *idempotency.Claim, 16)
	route := guarded(g, nil, func(x Exchange) error {
		c := claimed(t, x)
		if !strings.HasPrefix(c.Key(), strings.TrimSuffix(scope, "17")) || c.Attempt() != 1 || x.Context().Value(key) != "kept" {
			t.Errorf("the handler found the key %q, attempt %d and %v, want a key like %q, attempt 1 and kept",
				c.Key(), c.Attempt(), x.Context().Value(key), scope)
		}
		left <- c
		if x.Query("panic") != "" {
			panic("gatetest: a handler panics")
		}
		return say(200, "done")(x)
	})
	route.Around = []Middleware{outside}
	address := d.Serve(t, App{Routes: []Route{route}})
	buy(t, address).is(t, 200, "done", "Content-Type: "+plain)
	if err := next(t, "the handler to report its claim", left).Err(); !errors.Is(err, idempotency.ErrConcluded) {
		t.Errorf("when the response had ended: the claim has the error %v, want %v", err, idempotency.ErrConcluded)
	}
	if a := dial(t, address).post("/orders?panic=1", "tea", keyed("18")...); a.status != 500 {
		t.Errorf("a panic: got %d, want 500", a.status)
	}
	c := next(t, "the handler to report its claim", left)
	await(t, "the claim of a handler that panicked to end", func() bool { return errors.Is(c.Err(), idempotency.ErrConcluded) })
}

// idempotentLost: losing a claim ends the handler's context. The handler's answer is
// still sent, and is stored unless another request has taken the key over.
func idempotentLost(t *testing.T, d Driver) {
	for name, overtaken := range map[string]bool{"Forgotten": false, "TakenOver": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for a renewal, after a third of the lease, which is less than patience
			g := newGuard(t, d, idempotency.Options{Lease: min(patience(), 30*time.Second)})
			told := make(chan error, 16)
			options := &gate.IdempotentOptions{OnError: func(r gate.Request, err error) {
				if r.Path() != "/orders" || r.Method() != "POST" {
					t.Errorf("the hook was told of %s %s, want POST /orders", r.Method(), r.Path())
				}
				told <- err
			}}
			var runs atomic.Int64
			served := make(chan string, 1)
			address := d.Serve(t, App{Routes: []Route{guarded(g, options, func(x Exchange) error {
				n := runs.Add(1)
				if n == 1 {
					if was, err := g.Forget(context.Background(), scope); !was || err != nil {
						t.Errorf("Forget: got %v, %v, want true and no error", was, err)
					}
					if overtaken {
						buy(t, <-served).is(t, 200, "the second", "Content-Type: "+plain)
					}
					select {
					case <-x.Context().Done():
					case <-time.After(patience()):
						t.Error("the handler's context did not end, want it to end when the claim is lost")
					}
					if err := context.Cause(x.Context()); !errors.Is(err, idempotency.ErrLost) {
						t.Errorf("the handler's context ended with %v, want %v", err, idempotency.ErrLost)
					}
					return say(200, "the first")(x)
				}
				return say(200, "the second")(x)
			})}})
			served <- address
			buy(t, address).is(t, 200, "the first", "Content-Type: "+plain)
			stands, want := "the first", idempotency.Stats{Begun: 1, Lost: 1, Completed: 1, Flushed: 1}
			if overtaken {
				stands, want = "the second", idempotency.Stats{Begun: 2, Lost: 1, Completed: 1, Overtaken: 1}
				if err := next(t, "OnError to be told", told); !errors.Is(err, idempotency.ErrLost) {
					t.Errorf("the hook was told %v, want %v", err, idempotency.ErrLost)
				}
			}
			if got := g.Stats(); got != want {
				t.Errorf("got the guard's stats %+v, want %+v", got, want)
			}
			buy(t, address).is(t, 200, stands, "Content-Type: "+plain, marker)
			if len(told) > 0 {
				t.Errorf("the hook was told %v, want nothing more", <-told)
			}
		})
	}
}

// idempotentGone: if a client goes away before the answer or while it is sent, it finds
// the answer when it comes back.
func idempotentGone(t *testing.T, d Driver) {
	body := strings.Repeat("0123456789abcdef", 12<<10) // more than buffers hold
	for name, read := range map[string]bool{"Before": false, "During": true} {
		t.Run(name, func(t *testing.T) {
			g := newGuard(t, d, idempotency.Options{})
			var runs atomic.Int64
			running, finish := make(chan struct{}, 16), make(chan struct{})
			end := sync.OnceFunc(func() { close(finish) })
			defer end() // or a server with a bug would wait for ever
			ended := make(chan struct{}, 16)
			route := guarded(g, nil, func(x Exchange) error {
				runs.Add(1)
				running <- struct{}{}
				if !read {
					<-finish
				}
				if err := x.Context().Err(); err != nil {
					t.Errorf("the handler's context has the error %v, want none: it outlives its client", err)
				}
				return say(200, body)(x)
			})
			route.Around = []Middleware{func(x Exchange, next func() error) error {
				if d.Disconnect {
					defer context.AfterFunc(x.Context(), func() { ended <- struct{}{} })()
				}
				return next()
			}}
			address := d.Serve(t, App{Routes: []Route{route}})
			c := dial(t, address)
			if err := c.write("POST", "/orders", "tea", keyed("17", "Content-Length: 3")...); err != nil {
				t.Fatal(err)
			}
			next(t, "the handler to run", running)
			if read {
				if _, err := c.in.ReadByte(); err != nil {
					t.Fatal(err)
				}
			}
			_ = c.conn.(*net.TCPConn).SetLinger(0)
			_ = c.conn.Close()
			if d.Disconnect && !read {
				next(t, "the handler's context to end", ended)
			}
			end()
			concluded(t, g, 1)
			buy(t, address).is(t, 200, body, "Content-Type: "+plain, marker)
			if n := runs.Load(); n != 1 {
				t.Errorf("got %d runs, want 1", n)
			}
		})
	}
}

// idempotentReconciled: a handler may run after Reconcile found out about an earlier run.
// Its context does not end with its client either.
func idempotentReconciled(t *testing.T, d Driver) {
	var asked atomic.Int64
	g := newGuardOf(t, d, idempotency.Reconcile{
		Find: func(ctx context.Context, c *idempotency.Claim) (idempotency.Outcome, error) {
			if ctx.Err() != nil || c.Attempt() < 2 {
				t.Errorf("Reconcile was asked about attempt %d in a context with %v, "+
					"want attempt 2 or later, and no error", c.Attempt(), ctx.Err())
			}
			switch asked.Add(1) {
			case 1:
				return idempotency.Unknown(), errors.New("gatetest: the books are closed")
			case 2:
				return idempotency.NothingDone(), nil
			}
			found := gate.Reply{Status: 201, Body: []byte("found"), Header: []gate.Field{{Name: "Location", Value: "/orders/1"}}}
			return idempotency.DoneWith(gate.StoredReply(found)), nil
		},
	}, idempotency.Options{})
	var runs atomic.Int64
	running, gone := make(chan struct{}, 16), make(chan struct{}, 16)
	route := guarded(g, nil, func(x Exchange) error {
		if runs.Add(1) == 2 {
			running <- struct{}{}
			if d.Disconnect {
				next(t, "the handler's context to end", gone)
			}
			claimed(t, x)
		}
		return say(500, "no")(x)
	})
	route.Around = []Middleware{func(x Exchange, next func() error) error {
		if !d.Disconnect {
			return next()
		}
		defer context.AfterFunc(x.Context(), func() { gone <- struct{}{} })()
		return next()
	}}
	address := d.Serve(t, App{Routes: []Route{route}})
	buy(t, address).is(t, 500, "no", "Content-Type: "+plain)
	buy(t, address).isInDoubt(t)
	c := dial(t, address)
	if err := c.write("POST", "/orders", "tea", keyed("17", "Content-Length: 3")...); err != nil {
		t.Fatal(err)
	}
	next(t, "the handler to run", running)
	_ = c.conn.Close()
	concluded(t, g, 3)
	for range 2 {
		buy(t, address).is(t, 201, "found", "Location: /orders/1", marker)
	}
	if asked.Load() != 3 || runs.Load() != 2 {
		t.Errorf("Reconcile was asked %d times, and got %d runs, want 3 and 2", asked.Load(), runs.Load())
	}
}

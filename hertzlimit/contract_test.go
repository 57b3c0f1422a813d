package hertzlimit_test

import (
	"context"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/config"
	"github.com/cloudwego/hertz/pkg/network"
	"github.com/cloudwego/hertz/pkg/protocol/http1/resp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatetest"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/hertzlimit"
	"github.com/neap-go/neap/neaptest"
)

// The default settings of Hertz are missing: with them Hertz cannot tell %2F in a path
// from a slash.
func TestContract(t *testing.T) {
	t.Parallel()
	gatetest.Run(t, driver(listen, server.WithUseRawPath(true)))
}

func TestContractEncodedParameters(t *testing.T) {
	t.Parallel()
	gatetest.Run(t, driver(listenStandard, server.WithUseRawPath(true), server.WithUnescapePathValues(false)))
}

// With WithStreamBody handlers run before the body has arrived.
func TestContractStreamingBodies(t *testing.T) {
	t.Parallel()
	gatetest.Run(t, driver(listenStandard, server.WithUseRawPath(true), server.WithStreamBody(true)))
}

// With WithSenseClientDisconnection a request's context ends with its client. Here handlers
// stream with a writer of their own, as they do for server-sent events.
func TestContractDisconnection(t *testing.T) {
	t.Parallel()
	for name, listens := range map[string]listens{"Netpoll": listen, "Standard": listenStandard} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := driver(listens, server.WithUseRawPath(true), server.WithSenseClientDisconnection(true))
			d.Disconnect = true
			serve := d.Serve
			d.Serve = func(t testing.TB, app gatetest.App) string {
				for i, route := range app.Routes {
					if route.Handler != nil {
						app.Routes[i].Handler = func(x gatetest.Exchange) error { return route.Handler(written{x.(exchange)}) }
					}
				}
				return serve(t, app)
			}
			gatetest.Run(t, d)
		})
	}
}

func driver(listens listens, opts ...config.Option) gatetest.Driver {
	return gatetest.Driver{
		Redis: func(t testing.TB) script.Client {
			redis, err := store.Open(neaptest.New(t).Client(), &store.Options{Budget: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			return redis
		},
		Serve: func(t testing.TB, app gatetest.App) string { return serve(t, app, listens, opts) },
		Key: func(header string) gate.Key {
			return hertzlimit.Key(func(_ context.Context, c *app.RequestContext) (string, error) {
				if value := c.GetHeader(header); len(value) > 0 {
					return string(value), nil
				}
				return "", gatetest.ErrNoHeader
			})
		},
		Native: func(q gate.Request, header string) (string, bool) {
			c, ok := hertzlimit.Context(q)
			if !ok {
				return "", false
			}
			return string(c.GetHeader(header)), true
		},
		Errors:          gatetest.ErrorsOutside,
		BodyFirst:       true, // under WithStreamBody up to 8 KiB
		RefusedTrailers: []string{"Content-Type"},
		Hijack:          true,
		HijackAnswers:   true,
	}
}

func serve(t testing.TB, app gatetest.App, listens listens, opts []config.Option) (address string) {
	h, address := listens(t, opts)
	h.Use(recovered(app))
	h.Use(around(app.Around)...)
	h.Use(gates(app.Gates)...)
	for _, route := range app.Routes {
		handlers := append(around(route.Around), gates(route.Gates)...)
		if route.Endpoint != nil {
			handlers = append(handlers, hertzlimit.Handler(route.Endpoint))
		} else {
			handlers = append(handlers, handler(route.Handler))
		}
		path := strings.NewReplacer("{...}", "*rest", "{", ":", "}", "").Replace(route.Pattern)
		h.Handle(route.Method, path, handlers...)
		if route.Method == http.MethodGet {
			h.HEAD(path, handlers...)
		}
	}
	go func() { _ = h.Run() }()
	return address
}

func gates(gs []gate.Gate) (hs []app.HandlerFunc) {
	for _, g := range gs {
		hs = append(hs, hertzlimit.Middleware(g))
	}
	return hs
}

func around(ms []gatetest.Middleware) (hs []app.HandlerFunc) {
	for _, m := range ms {
		hs = append(hs, func(ctx context.Context, c *app.RequestContext) {
			x, ran := exchangeOf(ctx, c), false
			_ = m(x, func() error {
				ran = true
				c.Next(x.Context())
				return nil
			})
			if !ran {
				c.Abort()
			}
		})
	}
	return hs
}

func handler(h gatetest.Handler) app.HandlerFunc {
	return func(ctx context.Context, c *app.RequestContext) {
		if err := h(exchangeOf(ctx, c)); err != nil {
			_ = c.Error(err)
		}
	}
}

// recovered recovers panics, and renders an error to which nothing was answered.
func recovered(a gatetest.App) app.HandlerFunc {
	return func(ctx context.Context, c *app.RequestContext) {
		defer func() {
			if recover() != nil {
				c.AbortWithMsg(gatetest.Recovered, http.StatusInternalServerError)
			}
		}()
		c.Next(ctx)
		if err := c.Errors.Last(); err != nil && a.OnError != nil {
			a.OnError(exchangeOf(ctx, c), err)
		}
	}
}

type exchange struct {
	ctx *context.Context
	c   *app.RequestContext
}

func exchangeOf(ctx context.Context, c *app.RequestContext) exchange { return exchange{&ctx, c} }

func (x exchange) Context() context.Context       { return *x.ctx }
func (x exchange) SetContext(ctx context.Context) { *x.ctx = ctx }
func (x exchange) Param(name string) string       { return x.c.Param(name) }
func (x exchange) Query(name string) string       { return x.c.Query(name) }
func (x exchange) Value(key string) any           { return x.c.Value(key) }
func (x exchange) SetValue(key string, value any) { x.c.Set(key, value) }
func (x exchange) Rewrite(path string)            { x.c.URI().SetPath(path) }
func (x exchange) Body() ([]byte, error)          { return x.c.Body() }
func (x exchange) ContentLength() int64           { return int64(x.c.Request.Header.ContentLength()) }
func (x exchange) SetHeader(name, value string)   { x.c.Response.Header.Set(name, value) }
func (x exchange) AddHeader(name, value string)   { x.c.Response.Header.Add(name, value) }

func (x exchange) SetRequestHeader(name, value string) { x.c.Request.Header.Set(name, value) }
func (x exchange) DelRequestHeader(name string)        { x.c.Request.Header.Del(name) }

func (x exchange) SetPeer(address string) { x.c.SetConn(peered{x.c.GetConn(), peer(address)}) }

// peered is a connection that has another peer.
type peered struct {
	network.Conn
	peer net.Addr
}

func (p peered) RemoteAddr() net.Addr { return p.peer }

type peer string

func (p peer) Network() string { return "tcp" }
func (p peer) String() string  { return string(p) }

func (x exchange) Send(status int, body string) error {
	x.c.Response.Header.SetNoDefaultContentType(true)
	x.c.SetStatusCode(status)
	x.c.SetBodyString(body)
	return nil
}

func (x exchange) Stream(status int, chunks iter.Seq[string]) error {
	x.c.SetStatusCode(status)
	x.c.Response.Header.SetNoDefaultContentType(true)
	next, stop := iter.Pull(chunks)
	x.c.SetBodyStream(&pulled{next: next, stop: stop}, -1)
	return nil
}

// pulled is a stream of chunks.
type pulled struct {
	next func() (string, bool)
	stop func()
	rest string
}

func (r *pulled) Read(p []byte) (int, error) {
	for r.rest == "" {
		chunk, more := r.next()
		if !more {
			return 0, io.EOF
		}
		r.rest = chunk
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *pulled) Close() error {
	r.stop()
	return nil
}

func (x exchange) Hijack(talk func(net.Conn)) error {
	x.c.Hijack(func(conn network.Conn) {
		talk(conn)
		if w, ok := conn.(network.Writer); ok {
			_ = w.Flush()
		}
	})
	return nil
}

// written is an exchange whose handler streams with a writer of its own.
type written struct{ exchange }

func (x written) Stream(status int, chunks iter.Seq[string]) error {
	x.c.SetStatusCode(status)
	x.c.Response.Header.SetNoDefaultContentType(true)
	x.c.Response.HijackWriter(resp.NewChunkedBodyWriter(&x.c.Response, x.c.GetWriter()))
	for chunk := range chunks {
		_, _ = x.c.WriteString(chunk)
		_ = x.c.Flush()
	}
	return nil
}

package echotest

import (
	"context"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatetest"
	"github.com/neap-go/neap/internal/gatefake"
)

func (d Driver[C]) contract(t *testing.T) {
	gatetest.Run(t, gatetest.Driver{
		Redis: gatefake.Redis,
		Serve: d.serve,
		Key: func(header string) gate.Key {
			return d.Key(func(c C) (string, error) {
				if value := c.Request().Header.Get(header); value != "" {
					return value, nil
				}
				return "", gatetest.ErrNoHeader
			})
		},
		Native: func(q gate.Request, header string) (string, bool) {
			c, ok := d.Context(q)
			if !ok {
				return "", false
			}
			return c.Request().Header.Get(header), true
		},
		Errors:     gatetest.ErrorsInside,
		Hijack:     true,
		Disconnect: true,
	})
}

func (d Driver[C]) serve(t testing.TB, app gatetest.App) string {
	e := d.New()
	if app.OnError != nil {
		e.OnError(func(c C, err error) {
			if !d.Committed(c) { // as Echo asks of error handlers
				app.OnError(exchange[C]{c, d.Response}, err)
			}
		})
	}
	e.Use(d.recovered)
	for _, m := range append(d.around(app.Around), d.gates(app.Gates)...) {
		e.Use(m)
	}
	for _, route := range app.Routes {
		handler := func(c C) error { return route.Handler(exchange[C]{c, d.Response}) }
		if route.Endpoint != nil {
			handler = d.Handler(route.Endpoint)
		}
		path := strings.NewReplacer("{...}", "*", "{", ":", "}", "").Replace(route.Pattern)
		middleware := append(d.around(route.Around), d.gates(route.Gates)...)
		e.Add(route.Method, path, handler, middleware...)
		if route.Method == http.MethodGet {
			e.Add(http.MethodHead, path, handler, middleware...)
		}
	}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func (d Driver[C]) gates(gs []gate.Gate) (ms []Middleware[C]) {
	for _, g := range gs {
		ms = append(ms, d.Middleware(g))
	}
	return ms
}

func (d Driver[C]) around(ms []gatetest.Middleware) (out []Middleware[C]) {
	for _, m := range ms {
		out = append(out, func(next Handler[C]) Handler[C] {
			return func(c C) error {
				return m(exchange[C]{c, d.Response}, func() error { return next(c) })
			}
		})
	}
	return out
}

func (d Driver[C]) recovered(next Handler[C]) Handler[C] {
	return func(c C) (err error) {
		defer func() {
			if recover() != nil && !d.Committed(c) {
				err = c.String(http.StatusInternalServerError, gatetest.Recovered)
			}
		}()
		return next(c)
	}
}

type exchange[C Context] struct {
	c        C
	response func(C) http.ResponseWriter
}

func (x exchange[C]) Context() context.Context       { return x.c.Request().Context() }
func (x exchange[C]) SetContext(ctx context.Context) { x.c.SetRequest(x.c.Request().WithContext(ctx)) }
func (x exchange[C]) Param(name string) string       { return x.c.Param(name) }
func (x exchange[C]) Query(name string) string       { return x.c.QueryParam(name) }
func (x exchange[C]) Value(key string) any           { return x.c.Get(key) }
func (x exchange[C]) SetValue(key string, value any) { x.c.Set(key, value) }
func (x exchange[C]) Body() ([]byte, error)          { return io.ReadAll(x.c.Request().Body) }
func (x exchange[C]) ContentLength() int64           { return x.c.Request().ContentLength }
func (x exchange[C]) SetHeader(name, value string)   { x.response(x.c).Header().Set(name, value) }
func (x exchange[C]) AddHeader(name, value string)   { x.response(x.c).Header().Add(name, value) }

func (x exchange[C]) SetPeer(address string)              { x.c.Request().RemoteAddr = address }
func (x exchange[C]) SetRequestHeader(name, value string) { x.c.Request().Header.Set(name, value) }
func (x exchange[C]) DelRequestHeader(name string)        { x.c.Request().Header.Del(name) }

func (x exchange[C]) Rewrite(path string) {
	u := x.c.Request().URL
	u.Path, u.RawPath = path, ""
}

func (x exchange[C]) Send(status int, body string) error {
	x.response(x.c).WriteHeader(status)
	if body != "" {
		_, err := io.WriteString(x.response(x.c), body)
		return err
	}
	return nil
}

func (x exchange[C]) Stream(status int, chunks iter.Seq[string]) error {
	w := x.response(x.c)
	w.WriteHeader(status)
	for chunk := range chunks {
		_, _ = io.WriteString(w, chunk)
		_ = http.NewResponseController(w).Flush()
	}
	return nil
}

func (x exchange[C]) Hijack(talk func(net.Conn)) error {
	conn, _, err := http.NewResponseController(x.response(x.c)).Hijack()
	if err == nil {
		defer conn.Close()
		talk(conn)
	}
	return err
}

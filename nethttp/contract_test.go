package nethttp_test

import (
	"context"
	"io"
	"iter"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatetest"
	"github.com/neap-go/neap/internal/gatefake"
	"github.com/neap-go/neap/nethttp"
)

func TestContract(t *testing.T) {
	t.Parallel()
	gatetest.Run(t, gatetest.Driver{
		Redis: gatefake.Redis,
		Serve: serve,
		Key: func(header string) gate.Key {
			return nethttp.Key(func(r *http.Request) (string, error) {
				if value := r.Header.Get(header); value != "" {
					return value, nil
				}
				return "", gatetest.ErrNoHeader
			})
		},
		Native: func(q gate.Request, header string) (string, bool) {
			r, ok := nethttp.Context(q)
			if !ok {
				return "", false
			}
			return r.Header.Get(header), true
		},
		Hijack:     true,
		Disconnect: true,
	})
}

func serve(t testing.TB, app gatetest.App) string {
	mux := http.NewServeMux()
	for _, route := range app.Routes {
		var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = route.Handler(&exchange{w, r})
		})
		if route.Endpoint != nil {
			h = nethttp.Handler(route.Endpoint)
		}
		h = around(route.Around, gates(route.Gates, h))
		mux.Handle(route.Method+" "+strings.Replace(route.Pattern, "{...}", "{rest...}", 1), h)
	}
	server := httptest.NewUnstartedServer(recovered(around(app.Around, gates(app.Gates, mux))))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func gates(gs []gate.Gate, h http.Handler) http.Handler {
	for _, g := range slices.Backward(gs) {
		h = nethttp.Middleware(g)(h)
	}
	return h
}

func around(ms []gatetest.Middleware, h http.Handler) http.Handler {
	for _, m := range slices.Backward(ms) {
		next := h
		h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			x := &exchange{w, r}
			_ = m(x, func() error {
				next.ServeHTTP(x.w, x.r)
				return nil
			})
		})
	}
	return h
}

func recovered(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = io.WriteString(w, gatetest.Recovered)
			}
		}()
		h.ServeHTTP(w, r)
	})
}

type exchange struct {
	w http.ResponseWriter
	r *http.Request
}

func (x *exchange) Context() context.Context       { return x.r.Context() }
func (x *exchange) SetContext(ctx context.Context) { x.r = x.r.WithContext(ctx) }
func (x *exchange) Param(name string) string       { return x.r.PathValue(name) }
func (x *exchange) Query(name string) string       { return x.r.URL.Query().Get(name) }
func (x *exchange) Value(key string) any           { return x.r.Context().Value(key) }
func (x *exchange) Body() ([]byte, error)          { return io.ReadAll(x.r.Body) }
func (x *exchange) ContentLength() int64           { return x.r.ContentLength }
func (x *exchange) SetHeader(name, value string)   { x.w.Header().Set(name, value) }
func (x *exchange) AddHeader(name, value string)   { x.w.Header().Add(name, value) }
func (x *exchange) SetPeer(address string)         { x.r.RemoteAddr = address }

func (x *exchange) SetRequestHeader(name, value string) { x.r.Header.Set(name, value) }
func (x *exchange) DelRequestHeader(name string)        { x.r.Header.Del(name) }

func (x *exchange) Rewrite(path string) { x.r.URL.Path, x.r.URL.RawPath = path, "" }

func (x *exchange) SetValue(key string, value any) {
	x.SetContext(context.WithValue(x.Context(), key, value))
}

func (x *exchange) Send(status int, body string) error {
	x.w.WriteHeader(status)
	_, err := io.WriteString(x.w, body)
	return err
}

func (x *exchange) Stream(status int, chunks iter.Seq[string]) error {
	x.w.WriteHeader(status)
	for chunk := range chunks {
		_, _ = io.WriteString(x.w, chunk)
		_ = http.NewResponseController(x.w).Flush()
	}
	return nil
}

func (x *exchange) Hijack(talk func(net.Conn)) error {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err == nil {
		defer conn.Close()
		talk(conn)
	}
	return err
}

package ginlimit_test

import (
	"context"
	"io"
	"iter"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatetest"
	"github.com/neap-go/neap/ginlimit"
	"github.com/neap-go/neap/internal/gatefake"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	os.Exit(m.Run())
}

// The default settings of Gin are missing: with them Gin cannot tell %2F in a path from a
// slash.
func TestContract(t *testing.T) {
	t.Parallel()
	gatetest.Run(t, driver(func(e *gin.Engine) { e.UseEscapedPath = true }))
}

func TestContractRawPath(t *testing.T) {
	t.Parallel()
	gatetest.Run(t, driver(func(e *gin.Engine) { e.UseRawPath = true }))
}

func TestContractEncodedParameters(t *testing.T) {
	t.Parallel()
	gatetest.Run(t, driver(func(e *gin.Engine) { e.UseEscapedPath, e.UnescapePathValues = true, false }))
}

func driver(configure func(*gin.Engine)) gatetest.Driver {
	return gatetest.Driver{
		Redis: gatefake.Redis,
		Serve: func(t testing.TB, app gatetest.App) string {
			engine := gin.New()
			configure(engine)
			return serve(t, engine, app)
		},
		Key: func(header string) gate.Key {
			return ginlimit.Key(func(c *gin.Context) (string, error) {
				if value := c.GetHeader(header); value != "" {
					return value, nil
				}
				return "", gatetest.ErrNoHeader
			})
		},
		Native: func(q gate.Request, header string) (string, bool) {
			c, ok := ginlimit.Context(q)
			if !ok {
				return "", false
			}
			return c.GetHeader(header), true
		},
		Pooled:     func(x gatetest.Exchange) context.Context { return x.(exchange).c },
		Errors:     gatetest.ErrorsOutside,
		Hijack:     true,
		Disconnect: true,
	}
}

func serve(t testing.TB, engine *gin.Engine, app gatetest.App) string {
	engine.Use(recovered, func(c *gin.Context) {
		c.Next()
		if len(c.Errors) > 0 && !c.Writer.Written() && app.OnError != nil {
			app.OnError(exchange{c}, c.Errors.Last())
		}
	})
	engine.Use(around(app.Around)...)
	engine.Use(gates(app.Gates)...)
	for _, route := range app.Routes {
		handlers := append(around(route.Around), gates(route.Gates)...)
		if route.Endpoint != nil {
			handlers = append(handlers, ginlimit.Handler(route.Endpoint))
		} else {
			handlers = append(handlers, func(c *gin.Context) {
				if err := route.Handler(exchange{c}); err != nil {
					_ = c.Error(err)
				}
			})
		}
		path := strings.NewReplacer("{...}", "*rest", "{", ":", "}", "").Replace(route.Pattern)
		engine.Handle(route.Method, path, handlers...)
		if route.Method == "GET" {
			engine.HEAD(path, handlers...)
		}
	}
	server := httptest.NewServer(engine)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func gates(gs []gate.Gate) (hs []gin.HandlerFunc) {
	for _, g := range gs {
		hs = append(hs, ginlimit.Middleware(g))
	}
	return hs
}

func around(ms []gatetest.Middleware) (hs []gin.HandlerFunc) {
	for _, m := range ms {
		hs = append(hs, func(c *gin.Context) {
			ran := false
			_ = m(exchange{c}, func() error {
				ran = true
				c.Next()
				return nil
			})
			if !ran {
				c.Abort()
			}
		})
	}
	return hs
}

func recovered(c *gin.Context) {
	defer func() {
		if recover() == nil {
			return
		}
		c.Abort()
		if !c.Writer.Written() {
			c.String(500, gatetest.Recovered)
		}
	}()
	c.Next()
}

type exchange struct{ c *gin.Context }

func (x exchange) Context() context.Context       { return x.c.Request.Context() }
func (x exchange) SetContext(ctx context.Context) { x.c.Request = x.c.Request.WithContext(ctx) }
func (x exchange) Param(name string) string       { return x.c.Param(name) }
func (x exchange) Query(name string) string       { return x.c.Query(name) }
func (x exchange) Value(key string) any           { value, _ := x.c.Get(key); return value }
func (x exchange) SetValue(key string, value any) { x.c.Set(key, value) }
func (x exchange) SetPeer(address string)         { x.c.Request.RemoteAddr = address }
func (x exchange) Rewrite(path string)            { x.c.Request.URL.Path, x.c.Request.URL.RawPath = path, "" }
func (x exchange) Body() ([]byte, error)          { return io.ReadAll(x.c.Request.Body) }
func (x exchange) ContentLength() int64           { return x.c.Request.ContentLength }
func (x exchange) SetHeader(name, value string)   { x.c.Writer.Header().Set(name, value) }
func (x exchange) AddHeader(name, value string)   { x.c.Writer.Header().Add(name, value) }

func (x exchange) SetRequestHeader(name, value string) { x.c.Request.Header.Set(name, value) }
func (x exchange) DelRequestHeader(name string)        { x.c.Request.Header.Del(name) }

func (x exchange) Send(status int, body string) error {
	x.c.Status(status)
	x.c.Writer.WriteHeaderNow()
	_, err := x.c.Writer.WriteString(body)
	if status == 204 || status == 304 {
		return nil
	}
	return err
}

func (x exchange) Stream(status int, chunks iter.Seq[string]) error {
	x.c.Status(status)
	for chunk := range chunks {
		_, _ = x.c.Writer.Write([]byte(chunk))
		x.c.Writer.Flush()
	}
	return nil
}

func (x exchange) Hijack(talk func(net.Conn)) error {
	conn, _, err := x.c.Writer.Hijack()
	if err == nil {
		defer conn.Close()
		talk(conn)
	}
	return err
}

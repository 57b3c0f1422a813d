package hertzlimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/ut"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/hertzlimit"
)

// A gate sees nothing of an answer that Hertz or middleware outside makes.
func TestAnswersMadeOutside(t *testing.T) {
	t.Parallel()
	refusing := entering(func(gate.Request) gate.Pass {
		return gate.Pass{Reply: &gate.Reply{Status: http.StatusForbidden, Refused: true}}
	})
	for name, c := range map[string]struct {
		path    string
		handler app.HandlerFunc
		inner   gate.Gate
		status  int // 0: unseen
		refused bool
	}{
		"NoRoute": {"/nowhere", ok, gate.Chain(), 0, false},
		"Error": {"/detail", func(_ context.Context, c *app.RequestContext) {
			_ = c.Error(errors.New("failed"))
		}, gate.Chain(), 0, false},
		"ErrorWithAStatus": {"/detail", func(_ context.Context, c *app.RequestContext) {
			c.AbortWithError(http.StatusTeapot, errors.New("failed"))
		}, gate.Chain(), http.StatusTeapot, false},
		"NothingWritten":       {"/detail", func(context.Context, *app.RequestContext) {}, gate.Chain(), http.StatusOK, false},
		"RefusedWithoutARoute": {"/nowhere", ok, refusing, http.StatusForbidden, true},
		"RefusedOfTheRoute":    {"/detail", ok, refusing, http.StatusForbidden, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := make(chan *gate.Reply, 1)
			h := server.New(server.WithDisablePrintRoute(true))
			h.Use(hertzlimit.Middleware(told(left)), hertzlimit.Middleware(c.inner))
			h.GET("/detail", c.handler)
			ut.PerformRequest(h.Engine, "GET", c.path, nil)
			reply := next(t, "Leave", left)
			switch {
			case c.status == 0 && reply != nil:
				t.Errorf("the gate saw %+v, want nothing", *reply)
			case c.status > 0 && (reply == nil || reply.Status != c.status || reply.Refused != c.refused):
				t.Errorf("the gate saw %+v, want the status %d, refused %t", reply, c.status, c.refused)
			}
		})
	}
}

// A handler may send requests of its own through the engine. If one of them is refused, the
// handler itself has still run.
func TestRefusalOfAnEarlierRequest(t *testing.T) {
	t.Parallel()
	for body, refused := range map[string]bool{"answer": false, "no": true} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			left := make(chan *gate.Reply, 1)
			h := server.New(server.WithDisablePrintRoute(true))
			refuse := hertzlimit.Middleware(entering(func(gate.Request) gate.Pass {
				return gate.Pass{Reply: &gate.Reply{Status: http.StatusTeapot, Body: []byte("no"), Refused: true}}
			}))
			h.GET("/detail", hertzlimit.Middleware(told(left)), func(ctx context.Context, c *app.RequestContext) {
				refuse(ctx, c)
				c.SetBodyString(body)
			})
			ut.PerformRequest(h.Engine, "GET", "/detail", nil)
			if reply := next(t, "Leave", left); reply == nil || reply.Refused != refused {
				t.Errorf("the gate saw %+v, want it refused: %t", reply, refused)
			}
		})
	}
}

// By default Hertz decodes a path before it looks for the route.
func TestEncodedSlashes(t *testing.T) {
	t.Parallel()
	for raw, want := range map[bool]string{false: "/orders/{id}/{part} a b", true: "/orders/{id} a/b "} {
		h := server.New(server.WithUseRawPath(raw), server.WithDisablePrintRoute(true))
		endpoint := hertzlimit.Handler(text(func(q gate.Request) string {
			return q.Route() + " " + q.Param("id") + " " + q.Param("part")
		}))
		h.GET("/orders/:id", endpoint)
		h.GET("/orders/:id/:part", endpoint)
		if got := ut.PerformRequest(h.Engine, "GET", "/orders/a%2Fb", nil).Body.String(); got != want {
			t.Errorf("with UseRawPath %t: got %q, want %q", raw, got, want)
		}
	}
}

func TestWhereTheRouteIsKnown(t *testing.T) {
	t.Parallel()
	for name, mount := range map[string]func(h *server.Hertz, noting app.HandlerFunc){
		"Use":   func(h *server.Hertz, noting app.HandlerFunc) { h.Use(noting); h.GET("/users/:id", ok) },
		"Group": func(h *server.Hertz, noting app.HandlerFunc) { h.Group("/users", noting).GET("/:id", ok) },
		"Route": func(h *server.Hertz, noting app.HandlerFunc) { h.GET("/users/:id", noting, ok) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got string
			h := server.New(server.WithDisablePrintRoute(true))
			mount(h, hertzlimit.Middleware(entering(func(q gate.Request) gate.Pass {
				got = q.Route() + " " + q.Param("id")
				return gate.Pass{}
			})))
			if ut.PerformRequest(h.Engine, "GET", "/users/7", nil); got != "/users/{id} 7" {
				t.Errorf("the gate was told %q, want \"/users/{id} 7\"", got)
			}
		})
	}
}

// TestNoParameterWithoutARoute: Hertz has found a part of a route, and a gate is not told.
func TestNoParameterWithoutARoute(t *testing.T) {
	t.Parallel()
	var got string
	h := server.New(server.WithDisablePrintRoute(true), server.WithHandleMethodNotAllowed(true))
	h.Use(hertzlimit.Middleware(entering(func(q gate.Request) gate.Pass {
		got = "route " + q.Route() + ", parameter " + q.Param("id")
		return gate.Pass{}
	})))
	h.GET("/users/:id/orders", ok)
	h.POST("/users/:id", ok)
	for method, want := range map[string]string{"GET": "route /users/{id}/orders, parameter 7", "POST": "route , parameter "} {
		if ut.PerformRequest(h.Engine, method, "/users/7/orders", nil); got != want {
			t.Errorf("%s: got %q, want %q", method, got, want)
		}
	}
}

// TestTheFramingIsNoField, as in net/http.
func TestTheFramingIsNoField(t *testing.T) {
	t.Parallel()
	got := make(chan []string, 1)
	address := behind(t, ok, []gate.Gate{entering(func(q gate.Request) gate.Pass {
		got <- q.Header("Transfer-Encoding")
		return gate.Pass{}
	})}, server.WithStreamBody(true))
	answers(t, address, "POST /detail HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntea\r\n0\r\n\r\n")
	if field := <-got; len(field) > 0 {
		t.Errorf("got Transfer-Encoding %q, want nothing", field)
	}
}

// TestAKeyOfHertzInAChain finds what an earlier gate has put into the context.
func TestAKeyOfHertzInAChain(t *testing.T) {
	t.Parallel()
	type tenant struct{}
	key := hertzlimit.Key(func(ctx context.Context, c *app.RequestContext) (string, error) {
		return fmt.Sprint(ctx.Value(tenant{}), " at ", string(c.Path())), nil
	})
	var got string
	g := gate.Chain(entering(func(q gate.Request) gate.Pass {
		return gate.Pass{Context: context.WithValue(q.Context(), tenant{}, "acme")}
	}), entering(func(q gate.Request) gate.Pass {
		var err error
		if got, err = key(q); err != nil {
			t.Error(err)
		}
		return gate.Pass{}
	}))
	h := server.New(server.WithDisablePrintRoute(true))
	h.GET("/detail", hertzlimit.Middleware(g), ok)
	if ut.PerformRequest(h.Engine, "GET", "/detail", nil); got != "acme at /detail" {
		t.Errorf("got %q, want \"acme at /detail\"", got)
	}
}

// A request of package ut has no connection.
func TestWithoutAConnection(t *testing.T) {
	t.Parallel()
	h := server.New(server.WithDisablePrintRoute(true))
	h.GET("/", hertzlimit.Handler(text(func(q gate.Request) string {
		key, err := gate.ByIP(nil)(q)
		if err != nil {
			t.Error(err)
		}
		return key
	})))
	if got := ut.PerformRequest(h.Engine, "GET", "/", nil).Body.String(); got != "ip=0.0.0.0" {
		t.Errorf("the key is %q, want ip=0.0.0.0", got)
	}
}

// text is an endpoint that answers with what the function returns.
type text func(gate.Request) string

func (f text) Serve(q gate.Request) gate.Reply { return gate.Reply{Body: []byte(f(q))} }

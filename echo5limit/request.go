package echo5limit

import (
	"github.com/labstack/echo/v5"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
	"github.com/neap-go/neap/internal/gatehttp"
)

type request struct {
	gatehttp.Request
	c *echo.Context
}

func newRequest(c *echo.Context) gate.Request {
	return request{gatehttp.Request{HTTP: c.Request()}, c}
}

func (q request) Value(key any) any {
	if name, ok := key.(string); ok {
		if value := q.c.Get(name); value != nil {
			return value
		}
	}
	return q.Request.Value(key)
}

// Route is empty if no route has both the path and the method: Echo then answers itself.
// In this case the context's Path is that of another method's route.
func (q request) Route() string {
	return gatehttp.EchoPattern(q.c.RouteInfo().Path)
}

func (q request) Param(name string) string {
	switch {
	case q.Route() == "":
		return ""
	case name == adapter.Wildcard:
		name = "*"
	}
	return q.c.Param(name)
}

package echolimit

import (
	"github.com/labstack/echo/v4"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
	"github.com/neap-go/neap/internal/gatehttp"
)

type request struct {
	gatehttp.Request
	c echo.Context
}

func newRequest(c echo.Context) gate.Request {
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

// Route is empty if the path belongs to a route and the method does not: Echo then
// answers 405 itself.
func (q request) Route() string {
	if q.c.Get(echo.ContextKeyHeaderAllow) != nil {
		return ""
	}
	return gatehttp.EchoPattern(q.c.Path())
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

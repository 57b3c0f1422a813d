package echolimit

import (
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/neap-go/neap/core/gate"
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

// Route is empty when the path belongs to a route and the method does not: Echo
// then answers 405 itself.
func (q request) Route() string {
	if q.c.Get(echo.ContextKeyHeaderAllow) != nil {
		return ""
	}
	return pattern(q.c.Path())
}

func (q request) Param(name string) string {
	switch {
	case q.Route() == "":
		return ""
	case name == gatehttp.Wildcard:
		name = "*"
	}
	return q.c.Param(name)
}

// pattern writes a path of Echo's as gates see it.
func pattern(path string) string {
	var out strings.Builder
	for path != "" {
		switch {
		case strings.HasPrefix(path, `\:`):
			out.WriteByte(':')
			path = path[2:]
		case path[0] == ':':
			name, _, _ := strings.Cut(path[1:], "/")
			out.WriteString("{" + name + "}")
			path = path[1+len(name):]
		case path[0] == '*':
			out.WriteString("{" + gatehttp.Wildcard + "}")
			path = path[1:]
		default:
			out.WriteByte(path[0])
			path = path[1:]
		}
	}
	return out.String()
}

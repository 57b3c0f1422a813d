package fiberlimit

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/neap-go/neap/core/gate/adapter"
	"github.com/neap-go/neap/internal/gatefiber"
)

func (q request) Route() string {
	route := q.c.Route()
	if isMiddleware(route) {
		return ""
	}
	return gatefiber.Pattern(route.Path)
}

func (q request) Param(name string) string {
	switch {
	case isMiddleware(q.c.Route()):
		return ""
	case name == adapter.Wildcard:
		name = gatefiber.Wildcard(q.c.Route().Params)
	}
	return strings.Clone(q.c.Params(name))
}

// isMiddleware reports whether a route was made by app.Use. Its path is a prefix, and not
// where the request goes.
var isMiddleware = gatefiber.OfUse[fiber.Route]()

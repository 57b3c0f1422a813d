package fiberlimit

import (
	"context"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatefiber"
)

// request copies every string that it returns: Fiber's strings are valid only until the
// handler has returned.
type request struct {
	gatefiber.Request

	c *fiber.Ctx
}

func requestOf(c *fiber.Ctx) request { return request{gatefiber.Request{Ctx: c.Context()}, c} }

func (q request) Context() context.Context { return q.c.UserContext() }

func (q request) Method() string { return strings.Clone(q.c.Method()) }

func (q request) Value(key any) any { return q.Stored(q.Context(), key) }

var _ gate.Request = request{}

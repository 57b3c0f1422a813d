package fiberlimit

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatehttp"
)

// Key makes a [gate.Key] of a function of the *fiber.Ctx. The function answers
// as a Key does, and may return strings as Fiber hands them out: they are
// copied. [gate.Tag] makes what it returns safe beside other keys. While the
// function runs, the header of a chunked request lacks each field that its trailer
// may have brought a line of; see [DropTrailers]. The trailer of a streamed body that is
// still to be read reaches no header, not even that of the handler. Key panics when f
// is nil.
func Key(f func(*fiber.Ctx) (string, error)) gate.Key {
	native := f
	if f != nil {
		native = func(c *fiber.Ctx) (string, error) {
			defer requestOf(c).HideTrailer()()
			return f(c)
		}
	}
	key := gatehttp.Native("fiberlimit", Context, native)
	return func(q gate.Request) (string, error) {
		s, err := key(q)
		return strings.Clone(s), err
	}
}

// Context returns the *fiber.Ctx that a gate's request was made of; false when
// another adapter made it.
func Context(q gate.Request) (*fiber.Ctx, bool) {
	if q, ok := gate.Unwrap(q).(request); ok {
		return q.c, true
	}
	return nil, false
}

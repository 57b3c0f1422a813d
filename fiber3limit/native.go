package fiber3limit

import (
	"strings"

	"github.com/gofiber/fiber/v3"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
)

// Key makes a [gate.Key] from a function of the fiber.Ctx. The function returns what a
// Key returns. It may return strings as Fiber returns them: they are copied. Use
// [gate.Tag] to make its result safe together with other keys. Key panics if f is nil.
//
// While the function runs, the header of a chunked request lacks each field that
// may have a line of the trailer; see [DropTrailers]. The trailer of a streamed body
// that is still to be read reaches no header, not even that of the handler.
func Key(f func(fiber.Ctx) (string, error)) gate.Key {
	native := f
	if f != nil {
		native = func(c fiber.Ctx) (string, error) {
			defer requestOf(c).HideTrailer()()
			return f(c)
		}
	}
	key := adapter.Key("fiber3limit", Context, native)
	return func(q gate.Request) (string, error) {
		s, err := key(q)
		return strings.Clone(s), err
	}
}

// Context returns the fiber.Ctx from which a gate's request was made. It returns false if
// another adapter made the request.
func Context(q gate.Request) (fiber.Ctx, bool) {
	if q, ok := gate.Unwrap(q).(request); ok {
		return q.c, true
	}
	return nil, false
}

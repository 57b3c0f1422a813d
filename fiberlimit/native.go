package fiberlimit

import (
	"fmt"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/neap-go/neap/core/gate"
)

var errForeign = fmt.Errorf("%w: fiberlimit.Key on a request that another adapter made", gate.ErrWiring)

// Key makes a [gate.Key] of a function of the *fiber.Ctx. The function answers
// as a Key does, and may return strings as Fiber hands them out: they are
// copied. [gate.Tag] makes what it returns safe beside other keys. Key panics
// when f is nil.
func Key(f func(*fiber.Ctx) (string, error)) gate.Key {
	if f == nil {
		panic("fiberlimit.Key: the function is nil")
	}
	return func(q gate.Request) (string, error) {
		c, ok := Context(q)
		if !ok {
			return "", errForeign
		}
		key, err := f(c)
		return strings.Clone(key), err
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

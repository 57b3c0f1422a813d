package echolimit

import (
	"fmt"

	"github.com/labstack/echo/v4"

	"github.com/neap-go/neap/core/gate"
)

var errForeign = fmt.Errorf("%w: echolimit.Key on a request that another adapter made", gate.ErrWiring)

// Key makes a [gate.Key] of a function of the echo.Context. The function answers
// as a Key does; [gate.Tag] makes what it returns safe beside other keys. Key
// panics when f is nil.
func Key(f func(echo.Context) (string, error)) gate.Key {
	if f == nil {
		panic("echolimit.Key: the function is nil")
	}
	return func(q gate.Request) (string, error) {
		c, ok := Context(q)
		if !ok {
			return "", errForeign
		}
		return f(c)
	}
}

// Context returns the echo.Context that a gate's request was made of; false when
// another adapter made it.
func Context(q gate.Request) (echo.Context, bool) {
	if q, ok := gate.Unwrap(q).(request); ok {
		return q.c, true
	}
	return nil, false
}

package echo5limit

import (
	"github.com/labstack/echo/v5"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatehttp"
)

// Key makes a [gate.Key] of a function of the *echo.Context. The function answers
// as a Key does; [gate.Tag] makes what it returns safe beside other keys. Key
// panics when f is nil.
func Key(f func(*echo.Context) (string, error)) gate.Key {
	return gatehttp.Native("echo5limit", Context, f)
}

// Context returns the *echo.Context that a gate's request was made of; false when
// another adapter made it.
func Context(q gate.Request) (*echo.Context, bool) {
	if q, ok := gate.Unwrap(q).(request); ok {
		return q.c, true
	}
	return nil, false
}

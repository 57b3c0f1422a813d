package ginlimit

import (
	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatehttp"
)

// Key makes a [gate.Key] of a function of the *gin.Context. The function answers
// as a Key does; [gate.Tag] makes what it returns safe beside other keys. Key
// panics when f is nil.
func Key(f func(*gin.Context) (string, error)) gate.Key {
	return gatehttp.Native("ginlimit", Context, f)
}

// Context returns the *gin.Context that a gate's request was made of; false when
// another adapter made it.
func Context(q gate.Request) (*gin.Context, bool) {
	if q, ok := gate.Unwrap(q).(request); ok {
		return q.c, true
	}
	return nil, false
}

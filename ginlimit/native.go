package ginlimit

import (
	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
)

// Key makes a [gate.Key] from a function of the *gin.Context. The function returns what a
// Key returns. Use [gate.Tag] to make its result safe together with other keys. Key
// panics if f is nil.
func Key(f func(*gin.Context) (string, error)) gate.Key {
	return adapter.Key("ginlimit", Context, f)
}

// Context returns the *gin.Context from which a gate's request was made. It returns false
// if another adapter made the request.
func Context(q gate.Request) (*gin.Context, bool) {
	if q, ok := gate.Unwrap(q).(request); ok {
		return q.c, true
	}
	return nil, false
}

package hertzlimit

import (
	"context"
	"strings"

	"github.com/cloudwego/hertz/pkg/app"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
)

// Key makes a [gate.Key] from a function of what a handler of Hertz gets. The function
// returns what a Key returns. It may return strings as Hertz returns them: they are
// copied. Use [gate.Tag] to make its result safe together with other keys. Key panics if
// f is nil.
func Key(f func(context.Context, *app.RequestContext) (string, error)) gate.Key {
	var native func(*request) (string, error)
	if f != nil {
		native = func(q *request) (string, error) { return f(q.ctx, q.c) }
	}
	key := adapter.Key("hertzlimit", requestOf, native)
	return func(q gate.Request) (string, error) {
		s, err := key(q)
		return strings.Clone(s), err
	}
}

// Context returns the *app.RequestContext from which a gate's request was made. It
// returns false if another adapter made the request.
func Context(q gate.Request) (*app.RequestContext, bool) {
	if own, ok := requestOf(q); ok {
		return own.c, true
	}
	return nil, false
}

// requestOf returns the request of this adapter with the context that gates of a chain
// before have made.
func requestOf(q gate.Request) (*request, bool) {
	own, ok := gate.Unwrap(q).(*request)
	if !ok {
		return nil, false
	}
	return &request{ctx: q.Context(), c: own.c}, true
}

package kratoslimit

import (
	"context"
	"errors"
	"fmt"

	"github.com/gorilla/mux"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/grpclimit"
	"github.com/neap-go/neap/internal/gatehttp"
)

// request is a request over HTTP as the gates of Middleware see it. The context is that of
// Kratos' middleware, which the *http.Request does not have.
type request struct {
	gatehttp.Request

	ctx       context.Context
	operation string
	message   any
}

var errNoBody = fmt.Errorf("%w: Kratos has decoded the body: use kratoslimit.Key for what stands in the message", gate.ErrWiring)

func (r *request) Context() context.Context { return r.ctx }
func (r *request) Value(key any) any        { return r.ctx.Value(key) }

// Route is the operation, or the path template if the handler has set none.
func (r *request) Route() string { return withoutExpressions(r.operation) }

// Param finds something if the operation is the path template.
func (r *request) Param(name string) string { return mux.Vars(r.HTTP)[name] }

func (r *request) Body(int64) ([]byte, error) { return nil, errNoBody }

// Key makes a [gate.Key] for [Middleware] from a function of the context, the operation and the
// message, over HTTP and gRPC. The function returns what a Key returns. Use [gate.Tag] to make
// its result safe together with other keys. Key panics if f is nil.
func Key(f func(ctx context.Context, operation string, message any) (string, error)) gate.Key {
	if f == nil {
		panic("kratoslimit.Key: f is nil")
	}
	overGRPC := grpclimit.Key(f)
	return func(q gate.Request) (string, error) {
		if r, ok := gate.Unwrap(q).(*request); ok {
			return f(q.Context(), r.operation, r.message)
		}
		subject, err := overGRPC(q)
		if errors.Is(err, gate.ErrWiring) {
			err = fmt.Errorf("kratoslimit.Key, which is for gates of kratoslimit.Middleware: %w", err)
		}
		return subject, err
	}
}

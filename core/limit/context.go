package limit

import (
	"context"

	"github.com/neap-go/neap/core/internal/misuse"
)

type contextKey struct{}

// NewContext is ctx with the decision in it, in place of one that ctx may have.
func NewContext(ctx context.Context, d Decision) context.Context {
	misuse.Context(ctx)
	return context.WithValue(ctx, contextKey{}, d)
}

// FromContext is the decision that ctx was given last, by NewContext or by a gate.
func FromContext(ctx context.Context) (Decision, bool) {
	misuse.Context(ctx)
	d, ok := ctx.Value(contextKey{}).(Decision)
	return d, ok
}

package limit

import (
	"context"

	"github.com/neap-go/neap/core/internal/misuse"
)

type contextKey struct{}

// NewContext returns ctx with the decision in it. It replaces a decision that ctx may
// have.
func NewContext(ctx context.Context, d Decision) context.Context {
	misuse.Context(ctx)
	return context.WithValue(ctx, contextKey{}, d)
}

// FromContext returns the decision that NewContext or a gate last put into ctx. It
// returns false if there is none.
func FromContext(ctx context.Context) (Decision, bool) {
	misuse.Context(ctx)
	d, ok := ctx.Value(contextKey{}).(Decision)
	return d, ok
}

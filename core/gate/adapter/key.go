package adapter

import (
	"fmt"

	"github.com/neap-go/neap/core/gate"
)

// Key returns a [gate.Key] that calls f with the framework's own request, which context
// finds: it is what an adapter's function Key consists of. The Key fails with
// [gate.ErrWiring] on a request that another adapter made. pkg is the name of the
// adapter's package, for that error. Key panics if f is nil.
func Key[C any](pkg string, context func(gate.Request) (C, bool), f func(C) (string, error)) gate.Key {
	if f == nil {
		panic(pkg + ".Key: the function is nil")
	}
	return func(q gate.Request) (string, error) {
		c, ok := context(q)
		if !ok {
			return "", fmt.Errorf("%w: %s.Key on a request that another adapter made", gate.ErrWiring, pkg)
		}
		return f(c)
	}
}

package gatehttp

import (
	"fmt"

	"github.com/neap-go/neap/core/gate"
)

// Native makes the Key function of an adapter from its Context function: it returns a
// [gate.Key] that calls f with the framework's own request. It panics if f is nil.
// adapter is the name of the package, for errors.
func Native[C any](adapter string, context func(gate.Request) (C, bool), f func(C) (string, error)) gate.Key {
	if f == nil {
		panic(adapter + ".Key: the function is nil")
	}
	return func(q gate.Request) (string, error) {
		c, ok := context(q)
		if !ok {
			return "", fmt.Errorf("%w: %s.Key on a request that another adapter made", gate.ErrWiring, adapter)
		}
		return f(c)
	}
}

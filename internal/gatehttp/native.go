package gatehttp

import (
	"fmt"

	"github.com/neap-go/neap/core/gate"
)

// Native makes an adapter's Key of its Context: a [gate.Key] of a function of
// the framework's own request. It panics when f is nil. adapter is the name of
// the package, for errors.
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

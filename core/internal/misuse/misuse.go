// Package misuse reports mistakes of the calling program before they become a nil
// dereference. For a nil or zero receiver, a method returns an error; a method without an
// error panics. A nil context panics, as in the package context: a nil context is written
// in the source, while a nil receiver may come from an error that was not checked.
package misuse

import "context"

// Context panics if ctx is nil.
func Context(ctx context.Context) {
	if ctx == nil {
		panic("neap: ctx is nil: pass context.Background() where there is no other")
	}
}

// Made panics with the error unless made is true. made says whether the receiver was made
// by its constructor.
func Made(made bool, otherwise error) {
	if !made {
		panic(otherwise)
	}
}

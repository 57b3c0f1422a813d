// Package misuse names mistakes of the calling program before they become a nil
// dereference. A nil or zero receiver is an error where the method returns one, and
// a panic where it does not. A nil context is a panic, as it is to the package
// context: it stands in the source, while a nil receiver may come of an error that
// nobody looked at.
package misuse

import "context"

// Context panics when ctx is nil.
func Context(ctx context.Context) {
	if ctx == nil {
		panic("neap: ctx is nil: pass context.Background() where there is no other")
	}
}

// Made panics with the error unless the receiver was made as it has to be.
func Made(made bool, otherwise error) {
	if !made {
		panic(otherwise)
	}
}

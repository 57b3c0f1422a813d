// Package repanic carries a panic from a goroutine of the library to the caller that
// waits for it. In the caller, an HTTP server recovers it. On the goroutine it would end
// the process.
package repanic

import (
	"fmt"
	"runtime/debug"
)

// Error is a panic with the stack of where it happened.
type Error struct {
	value any
	stack []byte
}

// Of makes an Error of what recover returned.
func Of(value any) *Error { return &Error{value, debug.Stack()} }

func (e *Error) Error() string { return fmt.Sprintf("%v\n\n%s", e.value, e.stack) }

// Unwrap returns the value of the panic if it was an error, and otherwise nil.
func (e *Error) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

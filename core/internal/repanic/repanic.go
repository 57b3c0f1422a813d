// Package repanic carries a panic from a goroutine of the library to the caller that waits for it. There a server
// of HTTP recovers; on the goroutine it would end the process.
package repanic

import (
	"fmt"
	"runtime/debug"
)

// Error is a panic, with the stack that it came from.
type Error struct {
	value any
	stack []byte
}

// Of makes an Error of what recover returned.
func Of(value any) *Error { return &Error{value, debug.Stack()} }

func (e *Error) Error() string { return fmt.Sprintf("%v\n\n%s", e.value, e.stack) }

// Unwrap is what the goroutine panicked with, if that was an error.
func (e *Error) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

package undo

import "context"

type droppedKey struct{}

// WithDropped returns a context for calls whose conclusion may go on in the background.
// If it fails there, or is given up, told is called once, on a goroutine of its own. That
// may be before the call has returned.
func WithDropped(ctx context.Context, told func(error)) context.Context {
	return context.WithValue(ctx, droppedKey{}, told)
}

// Dropped returns what WithDropped has put into ctx, or nil.
func Dropped(ctx context.Context) func(error) {
	told, _ := ctx.Value(droppedKey{}).(func(error))
	return told
}

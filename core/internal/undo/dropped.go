package undo

import "context"

type droppedKey struct{}

// WithDropped returns a context for calls whose conclusion may go on in the background.
// If it is given up there, told is called once, on a goroutine of its own.
func WithDropped(ctx context.Context, told func(error)) context.Context {
	return context.WithValue(ctx, droppedKey{}, told)
}

// Dropped returns what WithDropped has put into ctx, or nil.
func Dropped(ctx context.Context) func(error) {
	told, _ := ctx.Value(droppedKey{}).(func(error))
	return told
}

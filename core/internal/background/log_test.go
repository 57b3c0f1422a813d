package background

import (
	"context"
	"log/slog"
	"testing"
)

// panicking is a handler of a log.
type panicking struct{ slog.Handler }

func (panicking) Enabled(context.Context, slog.Level) bool { panic("of the log") }

// TestAHandlerOfTheLogThatPanics ends nothing: what is logged is told, and no more. It
// changes the log of the process, so it is not parallel.
func TestAHandlerOfTheLogThatPanics(t *testing.T) { //nolint:paralleltest // see above
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(panicking{before.Handler()}))
	Log("text")
}

package background

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
)

// badHandler is a handler of a log that does not return.
type badHandler struct {
	slog.Handler
	leave func()
}

func (h badHandler) Enabled(context.Context, slog.Level) bool {
	h.leave()
	return true
}

// TestAHandlerOfTheLogThatDoesNotReturn ends nothing: what is logged is told, and no more.
func TestAHandlerOfTheLogThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(){"Panic": func() { panic("of the log") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Log(slog.New(badHandler{slog.Default().Handler(), leave}), slog.LevelError, "text")
		})
	}
}

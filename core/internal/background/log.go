package background

import (
	"context"
	"log/slog"
)

// Log writes a line to the logger, or to slog.Default if it is nil. The handler of the log
// is code of the user: it may panic or end its goroutine.
func Log(logger *slog.Logger, level slog.Level, text string, args ...any) {
	if logger == nil {
		logger = slog.Default()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		logger.Log(context.Background(), level, text, args...)
	}()
	<-done
}

package redistest

import (
	"log"
	"log/slog"
	"testing"
)

// DefaultLog has slog.Default write by h until the test ends or restore is called. It is
// for tests that are not parallel.
func DefaultLog(t testing.TB, h slog.Handler) (restore func()) {
	t.Helper()
	before, to, flags := slog.Default(), log.Writer(), log.Flags()
	slog.SetDefault(slog.New(h))
	restore = func() {
		slog.SetDefault(before)
		log.SetOutput(to) // which SetDefault has changed, too
		log.SetFlags(flags)
	}
	t.Cleanup(restore)
	return restore
}

package background

import (
	"log/slog"
	"sync/atomic"
)

// Hint is a warning about something that works and is probably a mistake. It is logged
// once in a process.
type Hint struct{ given atomic.Bool }

// Given reports whether it was logged.
func (h *Hint) Given() bool { return h.given.Load() }

// Give logs the text, unless that was done before.
func (h *Hint) Give(text string, args ...any) {
	if !h.Given() && !h.given.Swap(true) {
		Log(nil, slog.LevelWarn, text, args...)
	}
}

// Deadlines is the hint of NoDeadlines.
var Deadlines Hint

// NoDeadlines warns of a client that ends no call at its deadline and makes a lone call.
func NoDeadlines() {
	Deadlines.Give("neap: the client of Redis ends no call at its deadline, so each lone call takes a goroutine and twice the CPU: set ContextTimeoutEnabled in its options, and no ReadTimeout or WriteTimeout of -2")
}

package idempotency

import "bytes"

// Outcome says how a run ended. The zero Outcome is [Unknown].
type Outcome struct {
	state  state
	result []byte
}

// NothingDone says that the run has had no effect. The next caller may do the work.
func NothingDone() Outcome { return Outcome{state: free} }

// DoneWith says that the work was done, with this result, which later callers get. The
// result is copied; nil and empty are the same.
func DoneWith(result []byte) Outcome { return Outcome{state: done, result: bytes.Clone(result)} }

// DoneWithout says that the work was done and that its result is not kept, for example
// because it is too large or went elsewhere. Later callers get [ErrNoResult].
func DoneWithout() Outcome { return Outcome{state: gone} }

// Unknown says that the run may have had an effect, or a part of it. The [Policy] says what
// happens next.
func Unknown() Outcome { return Outcome{} }

// isDone reports whether the work must not run again.
func (o Outcome) isDone() bool { return o.state == done || o.state == gone }

// state is the first word of a record.
type state string

const (
	pending state = "pending"
	asking  state = "asking"
	free    state = "free"
	done    state = "done"
	gone    state = "gone"
	doubt   state = "doubt"
)

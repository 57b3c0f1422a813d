package idempotency

import "bytes"

// Outcome is what became of a run. The zero Outcome is [Unknown].
type Outcome struct {
	state  state
	result []byte
}

// NothingDone says that it has had no effect: the next one may run.
func NothingDone() Outcome { return Outcome{state: free} }

// DoneWith says that it was done, and with which result: whoever comes later
// gets the same. The result is copied; nil and empty are the same.
func DoneWith(result []byte) Outcome { return Outcome{state: done, result: bytes.Clone(result)} }

// DoneWithout says that it was done, and that there is no result to keep, since
// it is too large or went elsewhere: whoever comes later is told [ErrNoResult].
func DoneWithout() Outcome { return Outcome{state: gone} }

// Unknown says that it may have had an effect, or some of it: what happens next
// is up to [InDoubt].
func Unknown() Outcome { return Outcome{} }

// isDone says that it must not run again.
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

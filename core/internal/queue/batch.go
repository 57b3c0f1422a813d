package queue

import "time"

// How many calls there are at most.
const (
	mostCalls   = 256      // in a batch
	mostBytes   = 64 << 10 // in a batch; a call that has more goes alone
	mostWaiting = 10_000   // in a queue
)

// Batch is the calls that are sent together. It is valid until Server.Send returns.
type Batch struct {
	Entries  []*Entry
	Deadline time.Time // the latest of the callers'

	bytes  int
	direct bool  // its caller sends it, and it has no entries
	sent   int64 // when it was sent
	latest int64 // deadline, by the queue's clock
	lost   bool  // no caller waits for it any more
}

// Result is what became of a batch.
type Result int

// The results. The result of a batch is the greatest of those of its calls.
const (
	Ignored    Result = iota // it tells nothing of the server: its caller left early, or sending panicked
	Answered                 // each call has its answer, be it an error
	Unsent                   // the calls without an answer have not been sent
	Unanswered               // at least one call has no answer and may have run
)

// Server sends batches.
type Server interface {
	// Send sends the calls of a batch, and returns when each has its answer or none is
	// expected any more. Several batches may be in flight at once.
	Send(b *Batch) Result
	// Note reports each result but Ignored: that of each batch, and Unsent for each call that expired in
	// the queue while the server did not answer. A batch that no caller waits for any more is noted as
	// Unanswered, or as Unsent if nothing of it was written. If its answer still comes, it is noted as
	// Answered too.
	Note(r Result, calls int)
	// Probe asks the server that has the key something that changes nothing, and
	// waits a budget and more for the answer.
	Probe(key string, more time.Duration) Result
}

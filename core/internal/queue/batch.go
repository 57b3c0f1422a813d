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
	sent   int64 // when
	latest int64 // deadline, by the queue's clock
	lost   bool  // it is not waited for any more
}

// Result is what became of a batch.
type Result int

// The results.
const (
	Answered   Result = iota // each call has its answer, be it an error
	Unanswered               // one has none, and may have run
	Unsent                   // those without an answer have not been sent
	Ignored                  // its caller left it; it tells nothing of the server
)

// Server sends batches.
type Server interface {
	// Send sends the calls of a batch, and returns when each has its answer or none is
	// expected any more. Several batches may be in flight at once.
	Send(b *Batch) Result
	// Note reports a result to the server: of each batch, and of each call that was not
	// sent since the server did not answer. A batch that all its callers have left is noted as
	// Unanswered, and once more if its answer still comes.
	Note(r Result, calls int)
	// Probe asks the server that would get the call something that changes nothing, and
	// waits a budget and more for the answer. The call itself is not sent.
	Probe(c Call, more time.Duration) Result
}

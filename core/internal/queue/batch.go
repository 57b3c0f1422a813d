package queue

import "time"

// These constants limit how many calls there are.
const (
	mostCalls   = 256      // in a batch
	mostBytes   = 64 << 10 // in a batch; a larger call is sent alone
	mostWaiting = 10_000   // in a queue
)

// Batch is the calls that are sent together. It is valid until Server.Send returns.
type Batch struct {
	Entries  []*Entry
	Deadline time.Time // when the last budget of its calls ends

	bytes  int
	direct bool  // its caller sends it, and it has no entries
	sent   int64 // when it was sent
	latest int64 // Deadline by the queue's clock
	lost   bool  // no caller waits for it any more
}

// Result is how a batch ended.
type Result int

// These are the results. The result of a batch is the greatest of the results of its
// calls.
const (
	Ignored    Result = iota // it says nothing about the server: its caller left early, or sending panicked
	Answered                 // each call has its answer, which may be an error
	Unsent                   // the calls without an answer have not been sent
	Unanswered               // at least one call has no answer and may have run
)

// Server sends batches.
type Server interface {
	// Send sends the calls of a batch. It returns when each call has its answer, or when
	// no answer is expected any more. Several batches may be in flight at once.
	Send(b *Batch) Result
	// Note reports the result of each batch, except Ignored. It also reports Unsent for
	// each call that expired in the queue while the server did not answer, unless the call
	// was short. It reports Unanswered with no calls for a probe without an answer during
	// which no call was reported. A batch without an answer when the budgets of its calls have ended is
	// noted as Unanswered, or as Unsent if nothing of it was written. If its answer still
	// comes, it is noted as Answered too.
	Note(r Result, calls int)
	// Probe asks the server that has the key something that changes nothing. It waits for
	// the answer for a budget and more.
	Probe(key string, more time.Duration) Result
}

package queue

import (
	"context"
	"time"
)

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
	lone   Call  // its only call, which its caller sends; then it has no entries
	sent   int64 // when it was sent
	latest int64 // Deadline by the queue's clock
	lost   bool  // no caller waits for it any more
}

// Result is how a batch ended.
type Result int

// These are the results.
const (
	Ignored    Result = iota // it says nothing about the server: its caller left early, or sending panicked
	Answered                 // each call has its answer, which may be an error
	Unknown                  // something else than the server has replied
	Unsent                   // the calls without an answer have not been sent
	Unanswered               // at least one call has no answer and may have run
)

// Replied reports whether each call of the batch has a reply. The queue then sends on,
// because nobody has to wait: whether a reply is an answer matters only to Server.Note.
func (r Result) Replied() bool { return r == Answered || r == Unknown }

// Results are the results of the calls in a batch.
type Results struct {
	greatest Result
	calls    int
	unknown  int
}

// Add adds the result of a call.
func (all *Results) Add(r Result) {
	all.calls++
	if r == Unknown {
		all.unknown++
		r = Answered
	}
	all.greatest = max(all.greatest, r)
}

// Batch returns the result of the batch: the greatest of them. But it is Unknown only if
// most calls had such a reply. A proxy before several servers gives it to the calls for one
// of them, and the calls for the others must go on.
func (all *Results) Batch() Result {
	if all.greatest == Answered && 2*all.unknown > all.calls {
		return Unknown
	}
	return all.greatest
}

// Server sends batches, and the calls of lone callers. That of a store is server, in
// core/store/queue.go: a breaker, and the wire.Sender that has Send and SendLone.
type Server interface {
	// Send sends the calls of a batch. It returns when each call has its answer, or when
	// no answer is expected any more. Several batches may be in flight at once.
	Send(b *Batch) Result
	// SendLone sends the call of a lone caller, which waits for it. The context ends the call.
	SendLone(ctx context.Context, c Call) Result
	// Left reports that the caller of SendLone left before the budget had ended. That says
	// nothing about the server of the key, so Left may ask the server.
	Left(key string)
	// Note reports the result of each batch, except Ignored. It also reports Unsent for
	// each call that expired in the queue while the server did not answer, unless the call
	// was short; and Unsent with no calls for each probe without an answer during which no
	// call was reported. A batch without an answer when the budgets of its calls have ended
	// is noted as Unanswered, or as Unsent if nothing of it was written. If its answer
	// still comes, it is noted as Answered too.
	Note(r Result, calls int)
	// Probe asks the server that has the key something that changes nothing. It waits for
	// the answer for a budget and more.
	Probe(key string, more time.Duration) Result
}

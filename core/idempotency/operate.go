package idempotency

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/token"
)

// State is what the record of a key says. The zero State is [None].
type State string

// These are the states of a record.
const (
	None     State = ""         // nothing is known about the key
	Pending  State = "pending"  // the work runs, or its process is gone
	Free     State = "free"     // nothing was done: the next caller runs
	Done     State = "done"     // the work was done, and there is a result
	NoResult State = "noresult" // the work was done, and its result was not kept
	Doubtful State = "in doubt" // whether the work was done is not known
)

var states = map[state]State{pending: Pending, asking: Pending, free: Free, done: Done, gone: NoResult, doubt: Doubtful}

// Record is what Redis knows about a key, without what is private: the result, the
// fingerprint and the owner.
type Record struct {
	State   State
	Attempt int64         // how many claims there were
	Fence   int64         // the last fencing number
	Lease   time.Duration // until a Pending run counts as gone if it is not renewed; 0 if it is gone
	Expires time.Duration // until the record is forgotten; negative if never, which the next Begin mends
	Size    int           // bytes of the result as it is stored
}

// Inspect returns what Redis knows about a key; an unknown key has the zero Record. It is
// for operators. It returns [ErrKey], ctx.Err() or a [*script.Error]. It costs one round
// trip and changes nothing.
func (g *Guard) Inspect(ctx context.Context, key string) (Record, error) {
	record, err := g.record(key)
	if err != nil {
		return Record{}, err
	}
	reply, _, _, err := g.asker.Ask(ctx, inspectScript, record)
	if err != nil || reply == nil {
		return Record{}, err
	}
	parts := reply.([]any)
	size, left, lives := parts[1].(int64), parts[2].(int64), parts[3].(int64)
	r, ok := parse(parts[0].(string) + "\n")
	if !ok {
		return Record{}, broken(inspectScript)
	}
	return Record{
		State: states[r.state], Attempt: r.attempt, Fence: r.fence, Size: int(size),
		Lease: time.Duration(left) * time.Millisecond, Expires: time.Duration(lives) * time.Millisecond,
	}, nil
}

// Resolve says how a run ended that is in doubt, or whose lease is over: [NothingDone],
// [DoneWith] or [DoneWithout]. The claim of that run cannot be concluded any more. It costs
// one round trip.
//
// Resolve returns
//
//   - [ErrInFlight] while the work runs;
//   - [ErrNotInDoubt] if the key is unknown, free or done;
//   - [ErrUnresolved] for [Unknown], and [ErrKey];
//   - ctx.Err() if the caller's context ended;
//   - a [*script.Error] if Redis could not answer. After [script.ErrMaybeExecuted] Redis
//     may have noted the outcome, and another run may be in doubt by now: look at the record
//     again before you repeat Resolve, which would resolve that run.
func (g *Guard) Resolve(ctx context.Context, key string, o Outcome) error {
	record, err := g.record(key)
	switch {
	case err != nil:
		return err
	case o.state == "":
		return ErrUnresolved
	}
	var result []byte
	if o.state == done {
		result = g.seals.seal(record, o.result)
	}
	n, _, err := g.number(ctx, resolveScript, record, token.New(), string(o.state), milliseconds(g.opts.Retention), result)
	g.watch.notify(record)
	switch {
	case err != nil:
		return err
	case n > 0:
		return nil
	case n == running:
		return ErrInFlight
	}
	return ErrNotInDoubt
}

// Forget deletes what Redis knows about a key, and reports whether there was anything. It
// is for operators, and for deleting what is known about a person. The next caller does
// the work, even beside a run in progress. That run learns of it when it renews its
// lease. If it ends first, its record is back: Inspect says Pending before, so forget again
// when it has ended.
//
// Forget returns the errors of Inspect. After [script.ErrMaybeExecuted] the record may
// have been deleted, or may still be deleted. Forget does not ask a second time, because
// that could delete the claim of the next caller. It costs one round trip.
func (g *Guard) Forget(ctx context.Context, key string) (bool, error) {
	record, err := g.record(key)
	if err != nil {
		return false, err
	}
	defer g.watch.notify(record)
	reply, err := g.asker.Run(ctx, forgetScript, []string{record})
	if err != nil {
		return false, err
	}
	return reply == int64(1), nil
}

package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/token"
	"github.com/neap-go/neap/core/store"
)

// Answer is what [Guard.Begin] returns: a claim to do the work, or the result of work that
// was done. After an error it is the zero Answer, which has neither.
type Answer struct {
	Done   bool   // the work was done before, and this is its Result
	Result []byte // nil unless Done
	Claim  *Claim // the right to do the work now; nil if Done
}

// Begin asks once whether the work behind a key is this caller's to do, and does not
// wait. If the work was done before, Begin returns its result. Otherwise the caller gets
// a claim, does the work, and says by [Claim.Conclude] how it ended:
//
//	answer, err := guard.Begin(ctx, "order-17", "")
//	if err != nil {
//		return err
//	}
//	if answer.Done {
//		return reply(answer.Result)
//	}
//
// After an error the caller must not do the work; [Guard.WithFail] can change that. The error is
//
//   - [ErrInFlight], [ErrMismatch], [ErrInDoubt], [ErrNoResult] or [ErrUnreadable];
//   - [ErrKey] or [ErrFingerprint];
//   - ctx.Err() if the caller's context ended;
//   - a [*script.Error] if Redis could not answer within the budget;
//   - [ErrExpired] if the process slept until the lease was over, or [ErrLost] if the
//     claim was lost while [Reconcile] asked.
//
// The fingerprint tells apart requests that have the same key and are not the same. It
// has up to 128 printable ASCII characters without spaces, and is not "-". "" means none:
// it matches records without one, and a record without one matches every request.
//
// Any key but the empty one will do. Redis stores a long or unusual key as its hash.
//
// Redis may grant a claim although its answer is lost. Such a claim is given back in the
// background. A Guard looks for up to 100,000 such claims at a time, in some 45 MB of
// memory. It looks for a claim beyond that once at most. If that does not find the claim,
// the key stays in flight until the lease is over. Stats counts these claims as Undoing
// and Lapsing.
//
// Begin costs one round trip. If [Reconcile] asks, it also costs the time that Find takes
// and, unless Find returns NothingDone, one more round trip.
func (g *Guard) Begin(ctx context.Context, key, fingerprint string) (Answer, error) {
	return g.ask(ctx, key, fingerprint, false)
}

// BeginAny is [Guard.Begin] for a caller that got [ErrMismatch] and still has to know what
// became of the work. Every record matches. The record of a claim has the fingerprint of
// this call from then on.
func (g *Guard) BeginAny(ctx context.Context, key, fingerprint string) (Answer, error) {
	return g.ask(ctx, key, fingerprint, true)
}

func (g *Guard) ask(ctx context.Context, key, fingerprint string, every bool) (Answer, error) {
	q, err := g.question(key, fingerprint)
	if err != nil {
		return Answer{}, err
	}
	if every {
		q.terms = g.every
	}
	r, err := g.begin(ctx, &q)
	return g.finish(ctx, &q, r, err)
}

// question is one caller's attempt to run something.
type question struct {
	key    string // the caller's name for it
	record string // the name in Redis
	print  string
	terms  any // begins or every
	owner  string
	began  time.Time
	doubt  ask.Doubt
	waited bool // for another caller
}

func (g *Guard) question(key, fingerprint string) (question, error) {
	record, err := g.record(key)
	switch {
	case err != nil:
		return question{}, err
	case fingerprint == "":
		fingerprint = noPrint
	case !isWord(fingerprint):
		return question{}, ErrFingerprint
	}
	return question{key: key, record: record, print: fingerprint, terms: g.begins, owner: token.New(), began: time.Now()}, nil
}

func isWord(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) <= 128 && s != noPrint
}

// begin may be called again with the same question.
func (g *Guard) begin(ctx context.Context, q *question) (Answer, error) {
	reply, asked, in, err := g.asker.Ask(ctx, beginScript, q.record, q.owner, q.print, q.terms)
	q.doubt.Add(in)
	if err != nil {
		return Answer{}, err
	}
	text, is := reply.(string)
	switch {
	case reply == int64(0):
		return Answer{}, ErrMismatch
	case !is:
		return Answer{}, ErrInFlight
	}
	r, ok := parse(text)
	switch {
	case !ok:
		return Answer{}, broken(beginScript)
	case r.state == pending, r.state == asking:
		return g.claim(ctx, q, r, asked)
	case r.state == done:
		result, err := g.seals.open(q.record, r.result)
		if err != nil {
			return Answer{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
		return Answer{Done: true, Result: result}, nil
	case r.state == gone:
		return Answer{}, ErrNoResult
	}
	return Answer{}, ErrInDoubt // also if the record is free: this Begin was then taken back already, and its caller is gone
}

// finish counts the answer. If there is no claim, it takes back what Redis may have
// granted.
func (g *Guard) finish(ctx context.Context, q *question, r Answer, err error) (Answer, error) {
	err = q.doubt.Worst(err)
	outcome := g.count.finished(r, err)
	runs := g.runs(q, err)
	if r.Claim == nil && !runs {
		g.takeBack(q)
	}
	told := false
	defer func() { // an observer may end the goroutine, and then no caller gets the grant
		switch {
		case told:
		case r.Claim != nil:
			background.Go(func() { _ = r.Claim.Conclude(context.Background(), NothingDone()) })
		case runs:
			g.takeBack(q)
		}
	}()
	ask.Notify(ctx, g.store, store.Event{Primitive: store.Guard, Name: g.name, Outcome: outcome}, q.began, err)
	told = true
	if runs {
		return Answer{Claim: g.unguarded(ctx, q, err)}, nil
	}
	return r, err
}

func (g *Guard) takeBack(q *question) {
	if q.doubt.Calls == 0 {
		return
	}
	asked := *q // a copy, so that a replay needs no memory for its question
	asked.doubt.TakeBack(g.undo.Start, g.opts.Lease, false, func() (found bool, err error) {
		n, _, err := g.abandon(context.Background(), &asked, undone)
		return n > 0, err
	})
}

// inDoubt returns ErrInDoubt with the error of Reconcile.Find. What that has of another guard
// is only text in it: it is no answer of this one.
func inDoubt(why error) error {
	for _, answer := range []error{ErrInFlight, ErrMismatch, ErrNoResult, ErrUnreadable} {
		if errors.Is(why, answer) {
			return fmt.Errorf("%w: %v", ErrInDoubt, why) //nolint:errorlint // see above
		}
	}
	return fmt.Errorf("%w: %w", ErrInDoubt, why)
}

// errReconciled is the cause with which the context of Reconcile.Find ends.
var errReconciled = errors.New("idempotency: Reconcile.Find has returned")

// reconcile asks Reconcile.Find what became of the run before this claim.
func (g *Guard) reconcile(c *Claim) (Answer, error) {
	outcome, concluded := Unknown(), false
	defer func() {
		if !concluded {
			_ = c.Conclude(c.parent, outcome)
		}
	}()
	found, err := g.policy.(Reconcile).Find(c.Context(), c)
	c.lease.Drop(errReconciled)
	switch {
	case err != nil:
		return Answer{}, inDoubt(err)
	case found.state == "":
		return Answer{}, ErrInDoubt
	case found.state == free && c.Err() != nil:
		return Answer{}, c.Err()
	case found.state == free:
		concluded = true
		return Answer{Claim: c}, nil
	}
	concluded = true
	err = c.Conclude(c.parent, found)
	switch {
	case errors.Is(err, ErrLost):
		return Answer{}, ErrInFlight // another caller has taken over and asks now
	case found.state == gone:
		return Answer{}, ErrNoResult
	}
	return Answer{Done: true, Result: found.result}, nil // even if Redis has not noted it: it was done
}

package idempotency

import (
	"context"
	"errors"
	"fmt"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/token"
)

// Begin asks once whether what the key stands for is this caller's to run. It
// returns one of three:
//
//   - a claim: run it, and say by [Claim.Conclude] what became of it;
//   - a result: it was done, with that result;
//   - an error: [ErrInFlight], [ErrMismatch], [ErrInDoubt] or [ErrNoResult];
//     [ErrKey] or [ErrFingerprint]; ctx.Err() when the caller's context ended; a
//     [*script.Error] when Redis could not answer within the budget; or
//     [ErrExpired] when the process slept from the question on until the lease
//     was over, or [ErrLost] when that befell the claim while [Reconcile] was
//     asked. Then it must not run.
//
// A claim that Redis may have granted although no answer came is given back in the
// background. A Guard looks for 100,000 such claims at a time, in some 45 MB; one
// that is beyond that is looked for once, and otherwise keeps the key in flight
// until its lease is over. Stats counts them as Undoing and Lapsing.
//
// The fingerprint, up to 128 printable ASCII characters without spaces, tells
// apart what must not pass for the same although it has the same key. "" is none,
// which a record without one takes, and that takes any.
//
// Any key will do that is not empty; in Redis a long or unusual one stands as its
// hash. It costs one round trip, and with [Reconcile] what that takes.
func (g *Guard) Begin(ctx context.Context, key, fingerprint string) (*Claim, []byte, error) {
	q, err := g.question(key, fingerprint)
	if err != nil {
		return nil, nil, err
	}
	c, result, err := g.begin(ctx, &q)
	return g.told(&q, c, result, err)
}

// question is one caller's wish to run something.
type question struct {
	key    string // as the caller calls it
	record string // as Redis does
	print  string
	owner  string
	doubt  ask.Doubt
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
	return question{key: key, record: record, print: fingerprint, owner: token.New()}, nil
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
func (g *Guard) begin(ctx context.Context, q *question) (*Claim, []byte, error) {
	reply, asked, in, err := g.asker.Ask(ctx, beginScript, q.record, q.owner, q.print, g.begins)
	q.doubt.Add(in)
	if err != nil {
		return nil, nil, err
	}
	switch reply := reply.(type) {
	case int64:
		switch {
		case reply > 0:
			return nil, nil, ErrInFlight
		case reply == 0:
			return nil, nil, ErrMismatch
		}
	case string:
		r, ok := parse(reply)
		if !ok {
			break
		}
		switch r.state {
		case pending, asking:
			return g.claim(ctx, q, r, asked)
		case done:
			result, err := g.seals.open(q.record, r.result)
			if err != nil {
				return nil, nil, fmt.Errorf("%w: %w", ErrNoResult, err)
			}
			return nil, result, nil
		case gone:
			return nil, nil, ErrNoResult
		case doubt:
			return nil, nil, ErrInDoubt
		}
	}
	return nil, nil, broken(beginScript)
}

// told counts, and gives back what a question that came to nothing may have
// been granted.
func (g *Guard) told(q *question, c *Claim, result []byte, err error) (*Claim, []byte, error) {
	g.count.told(c, err)
	if c == nil {
		g.takeBack(q)
	}
	return c, result, err
}

func (g *Guard) takeBack(q *question) {
	if q.doubt.Calls == 0 {
		return
	}
	asked := *q // which nothing else outlasts, and a replay needs no memory for
	asked.doubt.TakeBack(g.undo.Start, g.opts.Lease, false, func() (found bool, err error) {
		n, _, err := g.abandon(context.Background(), &asked, undone)
		return n > 0, err
	})
}

// errReconciled is why the context of a Reconcile ends with it.
var errReconciled = errors.New("idempotency: Reconcile has returned")

// reconcile asks what became of the run before this claim.
func (g *Guard) reconcile(c *Claim) (*Claim, []byte, error) {
	outcome, settled := Unknown(), false
	defer func() {
		if !settled {
			_ = c.Conclude(c.parent, outcome)
		}
	}()
	found, err := g.opts.Reconcile(c.Context(), c)
	c.lease.Drop(errReconciled)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%w: %w", ErrInDoubt, err)
	case found.state == "":
		return nil, nil, ErrInDoubt
	case found.state == free && c.Err() != nil:
		return nil, nil, c.Err()
	case found.state == free:
		settled = true
		return c, nil, nil
	}
	settled = true
	err = c.Conclude(c.parent, found)
	switch {
	case errors.Is(err, ErrLost):
		return nil, nil, ErrInFlight // another asks now
	case found.state == gone:
		return nil, nil, ErrNoResult
	}
	return nil, found.result, nil // be it noted or not: it was done
}

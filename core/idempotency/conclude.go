package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/internal/undo"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// undone is how a claim ends that no caller was told of.
const undone state = "undo"

// Conclude says how the run ended, and ends the claim and its contexts. Only the first
// call counts, and every call returns what the first one returns. Conclude ends within
// one and a half budgets: it asks again if an answer is lost in the first half of one. It does
// not end early with ctx, and uses only the values of ctx. It costs one round trip.
//
// A claim that was lost can still be concluded while no other caller has taken over,
// because the work was done all the same. Conclude returns
//
//   - nil if Redis has noted the conclusion. A run that another caller has found to be in
//     doubt stays in doubt if this one says [NothingDone];
//   - [ErrLost] if another caller has taken over, if the run was resolved, or if the work
//     should be in doubt and there is no record left to say so;
//   - a [*script.Error] if Redis did not confirm the conclusion. neap then repeats it in
//     the background for a lease, and for longer while Redis does not answer. It does not
//     if the outcome was [NothingDone] or [Unknown] and Redis, asked again, says that
//     another caller has the claim: the first call may have run.
//
// If a hook of the client ends the goroutine (runtime.Goexit), neap does not repeat the
// conclusion. Every later call returns a *script.Error.
func (c *Claim) Conclude(ctx context.Context, o Outcome) error {
	if !c.made() {
		return errClaim
	}
	misuse.Context(ctx)
	c.conclusion.Do(func() {
		c.outcome = errEnded
		c.outcome = c.conclude(context.WithoutCancel(ctx), o)
	})
	return c.outcome
}

// errEnded is what every later call of Conclude returns if a hook of the client ended the
// goroutine of the first one.
var errEnded error = &script.Error{
	Script: completeScript.Name(), Class: script.ErrMaybeExecuted,
	Err: errors.New("a hook of the client ended the goroutine of the call that was to end the claim"),
}

func (c *Claim) conclude(ctx context.Context, o Outcome) error {
	c.over.Store(&ErrConcluded)
	if c.lost = c.lease.End(ErrConcluded) != nil; !c.lost {
		defer c.of.count.running.Add(-1) // only now: until then it counts as Running, from then on as Concluding
	}
	end := c.ending(o)
	asked := time.Now()
	n, in, err := c.first(ctx, end)
	if err == nil {
		return c.concluded(ctx, o, n, in.Calls > 0)
	}
	c.of.count.unconfirmed.Add(1)
	c.of.watch.notify(c.record)
	in.Add(ask.Doubt{Last: asked, Calls: 1})
	told, last := undo.Dropped(ctx), err
	start := c.of.late.Telling(false, func() { c.tell(told, fmt.Errorf("%w: %w", ErrDropped, last)) })
	kept := in.TakeBack(start, c.of.opts.Lease, true, func() (bool, error) {
		n, _, late := end(context.Background())
		if late == nil {
			c.tell(told, c.concluded(context.Background(), o, n, true))
		} else {
			last = late
		}
		return n > 0, late
	})
	if !kept && c.unguarded != nil {
		c.of.takeBack(&c.question)
	}
	return err
}

// tell tells a caller of undo.WithDropped how the conclusion ended in the background, unless
// that is what it was to do.
func (c *Claim) tell(told func(error), err error) {
	if err == nil && errors.Is(c.Err(), ErrInDoubt) {
		err = ErrInDoubt
	}
	if told != nil && err != nil && !errors.Is(err, errGone) { // errGone says no more than the error before
		background.Go(func() { told(err) })
	}
}

// first makes the first call that concludes a claim. A claim that is not in Redis can wait:
// it makes none while calls are held back.
func (c *Claim) first(ctx context.Context, end func(context.Context) (int64, ask.Doubt, error)) (int64, ask.Doubt, error) {
	if c.unguarded != nil && c.of.asker.Inside.IsOpen(c.of.opts.Budget) {
		return 0, ask.Doubt{}, c.unguarded
	}
	return end(ctx)
}

// concluded acts on the reply of Redis. doubted says that there may have been an earlier
// reply, which was lost.
func (c *Claim) concluded(ctx context.Context, o Outcome, n int64, doubted bool) error {
	if !o.isDone() {
		c.of.takeBack(&c.question) // a call that was lost may still begin the work once more
	}
	c.of.watch.notify(c.record)
	return c.verdict(ctx, o, n, doubted)
}

// ending returns the call that concludes a claim.
func (c *Claim) ending(o Outcome) func(ctx context.Context) (n int64, in ask.Doubt, err error) {
	if !o.isDone() {
		return func(ctx context.Context) (int64, ask.Doubt, error) { return c.of.abandon(ctx, &c.question, o.state) }
	}
	var result []byte
	if o.state == done {
		result = c.of.seals.seal(c.record, o.result)
	}
	return func(ctx context.Context) (int64, ask.Doubt, error) {
		return c.of.number(ctx, completeScript, c.record, c.owner, string(o.state),
			milliseconds(c.of.opts.Retention), number(c.fence), number(c.attempt), c.print, result)
	}
}

// abandon ends a run that is not done.
func (g *Guard) abandon(ctx context.Context, q *question, how state) (int64, ask.Doubt, error) {
	return g.number(ctx, abandonScript, q.record, q.owner, string(g.becomes(how)),
		milliseconds(g.opts.Retention), milliseconds(g.opts.DoubtRetention))
}

// becomes returns the state of a run that ends without being done.
func (g *Guard) becomes(how state) state {
	switch {
	case how != "":
		return how
	case retries(g.policy):
		return free
	}
	return doubt
}

// number runs a script whose reply is a number.
func (g *Guard) number(ctx context.Context, sc *script.Script, key string, args ...any) (n int64, in ask.Doubt, err error) {
	reply, _, in, err := g.asker.Ask(ctx, sc, key, args...)
	n, _ = reply.(int64)
	return n, in, err
}

// errGone says that either this call gave the run up, or another process took it over.
// Which one is not known.
var errGone error = &script.Error{
	Script: abandonScript.Name(), Class: script.ErrMaybeExecuted,
	Err: errors.New("no answer; when asked again, the claim was another caller's"),
}

// verdict counts a conclusion, and returns what the script's reply says about it.
func (c *Claim) verdict(ctx context.Context, o Outcome, n int64, doubted bool) error {
	g := c.of
	switch {
	case o.state == undone: // the caller was not told of the claim, so it cannot lose it
		return nil
	case n == absent:
		g.count.abandoned.Add(1)
		if g.becomes(o.state) != free { // a free key was the aim
			if !c.lost { // otherwise the loss was reported before
				g.loss(ctx)
			}
			return ErrLost
		}
		g.notify(ctx, store.Abandoned)
	case n < 0 && doubted && !o.isDone():
		return errGone
	case n < 0:
		g.count.overtaken.Add(1)
		g.notify(ctx, store.Overtaken)
		return ErrLost
	case o.isDone():
		if n == flushed && c.unguarded == nil {
			g.count.flushed.Add(1)
		}
		g.count.completed.Add(1)
		g.notify(ctx, store.Completed)
	default:
		g.count.abandoned.Add(1)
		if g.becomes(o.state) == doubt {
			g.count.doubted.Add(1)
			c.over.Store(&errDoubted)
			g.notify(ctx, store.InDoubt)
		} else {
			g.notify(ctx, store.Abandoned)
		}
	}
	return nil
}

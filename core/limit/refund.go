package limit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/script"
)

// grant is what a decision remembers of itself, for Refund.
type grant struct {
	of              *Limiter
	subject         string
	cost            int64
	at              int64 // by the local clock, where it is local
	peek            bool
	open            bool // let through by FailOpen
	denied          bool
	local           bool
	spent           atomic.Bool
	asked, answered time.Time
	readings        []reading
}

// asks is the cost as scripts and models take it.
func (g *grant) asks() int64 {
	if g.peek {
		return -g.cost
	}
	return g.cost
}

// fewRules is how many policies have room in memory that is at hand.
const fewRules = 4

// newGrant is a grant and its readings, in one piece of memory unless there are many.
func newGrant(subject string, cost int64, rules int) *grant {
	var g *grant
	switch {
	case rules == 1:
		one := new(struct {
			grant

			room [1]reading
		})
		g, one.readings = &one.grant, one.room[:]
	case rules <= fewRules:
		few := new(struct {
			grant

			room [fewRules]reading
		})
		g, few.readings = &few.grant, few.room[:rules]
	default:
		g = &grant{readings: make([]reading, rules)}
	}
	g.subject, g.cost = subject, cost
	return g
}

// Refund gives back what a decision of this limiter took: of a login that
// succeeded, of a request that was not served after all. It gives back to each
// policy, shadow ones included, what is left there of this decision's own: the
// permits while their window lasts, unless it is of one millisecond, of a bucket
// what has not drained. So that nobody gains by it, a decision is refunded once,
// whatever copies there are of it, and until its ResetAfter has passed by the
// clock that counted it; a call that reaches Redis later changes nothing.
//
// nil says that it was given back, or that nothing had been taken: by a cost of
// 0, by FailOpen, by shadow policies that would have denied. [ErrRefund] says
// that there is nothing to give back, and why. Other errors are ctx.Err() and,
// of Redis, a [*script.Error]; the call is not made again. After a
// [script.ErrNotExecuted] you may call Refund again; after any other error of
// Redis the permits may stay taken. What was decided in process, by NewLocal or FailLocal, is given
// back in process.
//
// It costs one round trip, and one more the first time or when the clock of
// Redis has to be read anew; each takes up to the Budget. A permit that was charged ahead
// ([Prepaid]) is given back in process, at no cost, until its Term or its window ends.
func (l *Limiter) Refund(ctx context.Context, d Decision) error {
	misuse.Context(ctx)
	if !l.made() {
		return errLimiter
	}
	g := d.grant
	if g == nil || g.of != l && (d.permits == nil || g.of.accounts != l.accounts || g.of.signature != l.signature) {
		return refuse("it is no decision of this limiter")
	}
	if g.peek || g.denied {
		return refuse("it was denied, or a Peek")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.permits != nil {
		if err := d.permits.refund(d.index, d.cost); err != nil {
			return err
		}
		l.memory.changed(g.subject)
		l.count.refunded.Add(1)
		return nil
	}
	if !g.spent.CompareAndSwap(false, true) {
		return refuse("it was given back before")
	}
	longest, took := l.longest(g)
	if !took {
		return nil
	}
	if time.Since(g.answered) >= longest {
		return refuse("its ResetAfter has passed")
	}
	given, err := l.giveBack(ctx, g)
	l.memory.changed(g.subject)
	switch {
	case err != nil:
		return err
	case !given:
		return refuse("nothing of it is left")
	}
	l.count.refunded.Add(1)
	return nil
}

func refuse(why string) error { return fmt.Errorf("%w: %s", ErrRefund, why) }

// longest is how long after the decision anything of it can be left, and
// whether it took anything.
func (l *Limiter) longest(g *grant) (longest time.Duration, took bool) {
	if g.open || g.cost == 0 {
		return 0, false
	}
	for i, r := range l.rules {
		if !g.readings[i].refused() {
			took = true
			longest = max(longest, r.state(g.readings[i], g.cost).ResetAfter)
		}
	}
	return longest, took
}

func (l *Limiter) giveBack(ctx context.Context, g *grant) (given bool, err error) {
	if g.local {
		return l.local.refund(l, g), nil
	}
	return l.remote.refund(ctx, l, g)
}

// refund says whether anything was given back. A script told the server's clock
// of the take gives nothing back too late, however late it runs itself.
func (r *remote) refund(ctx context.Context, l *Limiter, g *grant) (given bool, err error) {
	keys, policies := r.charged(l, g)
	node := r.store.Node(ctx, keys[0])
	known, fresh := r.clocks.last(node), false
	if known == nil || known.vague(g) {
		fresh = true
		if known, _, err = r.giveBack(ctx, node, keys, "0", "0", "0", "0"); err != nil {
			g.spent.Store(false) // it only asked for the time
			return false, err
		}
	}
	for {
		now := time.Now()
		at, sent := known.between(g.asked, g.answered.Add(later)), known.between(now, now).soonest
		args := append([]any{integer(g.cost), integer(at.soonest), integer(at.latest), integer(sent)}, policies...)
		seen, given, err := r.giveBack(ctx, node, keys, args...)
		if errors.Is(err, script.ErrNotExecuted) { // after ErrConfiguration a part of it may have been given back
			g.spent.Store(false)
		}
		if err != nil || given || fresh {
			return given, err
		}
		known, fresh = seen, true
	}
}

// later is how much later than it read the clock a decision may have dated its
// keys: before Redis 7.2 the clock moves within a script.
const later = 2 * time.Millisecond

// charged are the keys of the policies that the decision took from, and their
// arguments.
func (r *remote) charged(l *Limiter, g *grant) (keys []string, args []any) {
	for i, rule := range l.rules {
		if reading := g.readings[i]; !reading.refused() {
			entry := rule.entry()
			if w, is := rule.(*calendar); is {
				entry = w.refundEntry(reading)
			}
			keys = append(keys, r.space.Key(g.subject, rule.id().tail))
			args = append(append(args, entry[:]...), integer(rule.term(reading)))
		}
	}
	return keys, args
}

// giveBack runs the script once, and sees the server's clock.
func (r *remote) giveBack(ctx context.Context, node string, keys []string, args ...any) (*serverClock, bool, error) {
	seen := &serverClock{sent: time.Now()}
	reply, err := r.Run(ctx, refundScript, keys, args...)
	if err != nil {
		return nil, false, err
	}
	seen.got = time.Now()
	at, ok := reply.(int64)
	if !ok || at == 0 {
		return nil, false, &script.Error{Script: refundScript.Name(), Class: script.ErrFailed, Err: errReply}
	}
	seen.at = max(at, -at)
	r.clocks.note(node, seen)
	return seen, at > 0, nil
}

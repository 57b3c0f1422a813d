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

// grant is what a decision keeps for Refund and Settle.
type grant struct {
	of              *Limiter
	subject         string
	cost            int64
	token           string // names its estimates
	at              int64  // when it was decided, by the local clock; for local decisions
	peek            bool
	open            bool // admitted by FailOpen
	denied          bool
	local           bool
	spent           atomic.Bool              // was given back or settled
	settling        atomic.Pointer[settling] // set by the first Settle
	asked, answered time.Time
	readings        []reading
}

// asks returns the cost as scripts and models take it.
func (g *grant) asks() int64 {
	if g.peek {
		return -g.cost
	}
	return g.cost
}

// fewRules is how many policies have their readings in the same piece of memory as the
// grant.
const fewRules = 4

// newGrant returns a grant with its readings, in one piece of memory unless there are
// many.
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

// Refund gives back what a decision of this limiter took: for example for a login that
// succeeded, or for a request that was not served after all.
//
// It gives back to each policy, shadow policies included, what is left of this decision's
// own permits. For a window that is all of them while the window lasts, unless the window
// is one millisecond long. For a bucket it is what has not drained yet. A decision is
// refunded once, however many copies there are, and only until its ResetAfter has passed
// by the clock that counted it. So no caller can gain permits by it, unless the subject was
// Reset since the decision. A call that reaches Redis later changes nothing.
//
// A nil error means that the permits were given back, or that none had been taken:
// because the cost was 0, because FailOpen decided, or because every policy was a shadow
// policy that would have denied. [ErrRefund] means that there is nothing to give back;
// its text says why. Other errors are ctx.Err() and, from Redis, a [*script.Error].
// Refund does not make a call again. After [script.ErrNotExecuted] you may call Refund
// again. After any other error of Redis the permits may stay taken. A decision that was
// made in process, by NewLocal or FailLocal, is given back in process.
//
// It costs one round trip, and one more the first time or if the clock of Redis must be
// read again; each takes up to the Budget. A permit that was charged ahead ([Prepaid]) is
// given back in process, at no cost, until its Term or its window ends.
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
		l.changed(g.subject)
		l.count.refunded.Add(1)
		return nil
	}
	if !g.spent.CompareAndSwap(false, true) {
		return refuse("it was given back or settled before")
	}
	longest, took := l.longest(g)
	if !took {
		return nil
	}
	if time.Since(g.answered) >= longest {
		return refuse("its ResetAfter has passed")
	}
	given, err := l.giveBack(ctx, g)
	l.changed(g.subject)
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

// longest returns how long after the decision any of its permits can be left, and whether
// it took any.
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

// refund reports whether anything was given back. The script is told when, by the
// server's clock, the permits were taken. So even if it runs late, it gives nothing back
// too late.
func (r *remote) refund(ctx context.Context, l *Limiter, g *grant) (given bool, err error) {
	keys, args := r.toSettle(l, g, 0, nil)
	result, err := r.atItsTime(ctx, g, keys, args)
	if result.untouched {
		g.spent.Store(false)
	}
	return result.changed, err
}

// settled is the result of a run of limit_settle.lua.
type settled struct {
	reply     any
	changed   bool // something changed
	untouched bool // nothing changed, because the script did not run
	seen      *serverClock
}

// atItsTime runs the script with what is known of the server's clock: the soonest and the
// latest time at which the decision was made, and what the clock shows now. If the reply
// says that the server has another clock, it runs the script again.
func (r *remote) atItsTime(ctx context.Context, g *grant, keys []string, args func(clock []any) []any) (settled, error) {
	node := r.store.Node(ctx, keys[0])
	known, fresh := r.clocks.last(node), false
	if known == nil || known.vague(g) {
		fresh = true
		asked, err := r.runAt(ctx, node, keys[:1], "0", "0", "0", "0", "0", "0", "")
		if err != nil {
			return settled{untouched: true}, err // the call only asked for the time
		}
		known = asked.seen
	}
	for {
		now := time.Now()
		at, sent := known.between(g.asked, g.answered.Add(later)), known.between(now, now).soonest
		result, err := r.runAt(ctx, node, keys, args([]any{integer(at.soonest), integer(at.latest), integer(sent)})...)
		result.untouched = errors.Is(err, script.ErrNotExecuted) // after ErrConfiguration, some may have been given back
		if err != nil || result.changed || fresh {
			return result, err
		}
		known, fresh = result.seen, true
	}
}

// later is how much later than its clock reading a decision may have dated its keys:
// before Redis 7.2 the clock moves within a script.
const later = 2 * time.Millisecond

// runAt runs the script once and notes the server's clock.
func (r *remote) runAt(ctx context.Context, node string, keys []string, args ...any) (settled, error) {
	seen := &serverClock{sent: time.Now()}
	reply, err := r.Run(ctx, settleScript, keys, args...)
	if err != nil {
		return settled{}, err
	}
	seen.got = time.Now()
	at, ok := reply.(int64)
	if all, is := reply.([]any); is && len(all) > 0 {
		at, ok = all[0].(int64)
		if time, is := all[len(all)-1].(int64); is && at == 0 && len(all) == 2 { // in milliseconds
			at = time * 1000
		}
	}
	if !ok || at == 0 {
		return settled{}, &script.Error{Script: settleScript.Name(), Class: script.ErrFailed, Err: errReply}
	}
	seen.at = max(at, -at)
	r.clocks.note(node, seen)
	return settled{reply: reply, changed: at > 0, seen: seen}, nil
}

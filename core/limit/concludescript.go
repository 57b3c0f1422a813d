package limit

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/neap-go/neap/core/internal/reply"
	"github.com/neap-go/neap/core/script"
)

// conclude runs the script for a conclusion. changed is false if there was nothing to
// change, and untouched is true if the script certainly did not run.
func (r *remote) conclude(ctx context.Context, sc *script.Script, c *conclusion) (s Settlement, changed, untouched bool, err error) {
	g, l := c.grant, c.grant.of
	sc = sc.Replies(nil, c.gives)
	for again := false; ; again = true {
		keys, args := r.toConclude(c)
		if len(keys) == 1 { // only the marker: all policies are shadows that denied, or PerRequest
			return l.settlement(g, slices.Clone(g.readings), 0), true, true, nil
		}
		var result settled
		if c.actual < g.cost || g.token != "" {
			result, err = r.atItsTime(ctx, sc, g, keys, args)
		} else { // the difference is charged now, whatever the time is
			result, err = r.runAt(ctx, sc, r.Inside.Node(ctx, keys[0]), keys, args([]any{"0", "0", "0"})...)
		}
		if err != nil || c.how != settles {
			return s, result.changed, result.untouched, err
		}
		if now, is := outside(result.numbers); is {
			if again {
				return s, false, true, &script.Error{Script: sc.Name(), Class: script.ErrFailed, Err: errMoves}
			}
			l.seen(now)
			continue
		}
		s, ok := c.readSettled(result.numbers)
		if !ok {
			err = broken(sc)
		}
		return s, result.changed, false, err
	}
}

// toConclude returns the keys of limits/settle.lua and a function that makes its arguments
// from what is known of the clock.
func (r *remote) toConclude(c *conclusion) (keys []string, args func(clock []any) []any) {
	g, l := c.grant, c.grant.of
	behind := []string{r.space.Key(g.subject, "settled:"+c.token)} // keys that follow those of the policies: the marker, and estimates
	charged := make([]int, 0, len(l.rules))
	for i, rule := range l.rules {
		if told := g.readings[i]; !told.refused() && (c.how != settles || canSettle(rule, told)) {
			keys, charged = append(keys, r.space.Key(g.subject, rule.id().tail)), append(charged, i)
		}
	}
	count := len(keys)
	policies := make([]any, 0, count*(mostNumbers+5))
	for _, i := range charged {
		rule, told, estimates := l.rules[i], g.readings[i], 0
		if hasLease(rule) {
			behind = append(behind, r.estimatesOf(rule, g.subject))
			estimates = count + len(behind)
		}
		kind, numbers := rule.kind(), rule.numbers()
		if w, is := rule.(*calendar); is && c.givesBackOnly(w) {
			// The decision's own window. Half of its length tells two windows apart, because
			// the next one may be shorter.
			kind, numbers = "window", []any{integer(w.limit), integer(told.n[2] / 2), integer(w.largest)}
		}
		id := rule.id()
		policies = append(policies, kind)
		policies = append(policies, filled(numbers)...)
		policies = append(policies, integer(id.unit), integer(id.costs(g.cost)), integer(rule.term(told)), integer(int64(estimates)))
	}
	return append(keys, behind...), func(clock []any) []any {
		head := append([]any{integer(c.actual)}, clock...)
		estimate := ""
		if g.token != "" {
			estimate = g.estimate()
		}
		return append(append(head, integer(int64(count)), integer(markerLives.Milliseconds()), estimate), policies...)
	}
}

// givesBackOnly reports whether the conclusion charges nothing to a calendar's window. A
// settlement whose estimate was taken back charges the present window.
func (c *conclusion) givesBackOnly(w *calendar) bool {
	return c.how != settles || c.actual <= c.grant.cost && !hasLease(w)
}

// outside returns what the clock of Redis shows if it is in none of a calendar's windows.
func outside(numbers []any) (now int64, is bool) {
	if len(numbers) != 2 || numbers[0] != int64(0) {
		return 0, false
	}
	now, is = numbers[1].(int64)
	return now, is
}

// gives reports whether limits/settle.lua may reply that.
func (c *conclusion) gives(told any) (ok bool) {
	all, ok := reply.Numbers(told)
	switch {
	case !ok || len(all) == 0:
		return false
	case len(all) == 1: // the time alone
		return all[0] < 0
	case all[0] == 0:
		return len(all) == 2
	case c.how != settles:
		return true
	}
	many := 2
	for i, r := range c.grant.of.rules {
		many += c.width(r, c.grant.readings[i])
	}
	return len(all) == many
}

// width returns how many numbers limits/settle.lua replies for a policy in a settlement.
func (c *conclusion) width(r rule, told reading) int {
	if !canSettle(r, told) {
		return 0
	}
	if w, is := r.(*calendar); is && c.givesBackOnly(w) {
		return widthOf(r) - 1 // the script knows only the decision's own window
	}
	return widthOf(r)
}

// readSettled reads the reply of limits/settle.lua to a settlement. ok is false if a record
// is broken.
func (c *conclusion) readSettled(numbers []any) (s Settlement, ok bool) {
	g, l := c.grant, c.grant.of
	now, forgiven := numbers[0].(int64), numbers[1].(int64)
	numbers = numbers[2:]
	readings := slices.Clone(g.readings)
	for i, r := range l.rules {
		width := c.width(r, g.readings[i])
		if width == 0 {
			readings[i] = r.age(readings[i], time.Since(g.answered).Microseconds())
			continue
		}
		readings[i] = readSlice(numbers[:width])
		if !plausible(r, readings[i]) {
			return s, false
		}
		if width < widthOf(r) {
			b := r.(*calendar).boundsAt(max(now, -now) / 1000)
			readings[i].n[2] = b.at[2] - b.at[1]
		}
		numbers = numbers[width:]
	}
	return l.settlement(g, readings, forgiven), true
}

// settled is the result of a run of limits/settle.lua.
type settled struct {
	numbers   []any
	changed   bool // something changed, now or in an earlier run
	untouched bool // nothing changed, because the script did not run
	seen      *serverClock
}

// atItsTime runs the script with what is known of the server's clock: the soonest and the
// latest time at which the decision was made, and what the clock shows now. If the reply
// says that the server has another clock, it runs the script again.
func (r *remote) atItsTime(ctx context.Context, sc *script.Script, g *grant, keys []string, args func(clock []any) []any) (settled, error) {
	node := r.Inside.Node(ctx, keys[0])
	known, fresh := r.clocks.last(node), false
	if known == nil || known.vague(g) {
		fresh = true
		asked, err := r.runAt(ctx, sc, node, keys[:1], "0", "0", "0", "0", "0", "0", "")
		if err != nil {
			return settled{untouched: true}, err // the call only asked for the time
		}
		known = asked.seen
	}
	for {
		now := time.Now()
		at, sent := known.between(g.asked, g.answered.Add(later)), known.between(now, now).soonest
		result, err := r.runAt(ctx, sc, node, keys, args([]any{integer(at.soonest), integer(at.latest), integer(sent)})...)
		switch {
		case err == nil && fresh && len(result.numbers) == 1:
			return settled{untouched: true}, &script.Error{Script: sc.Name(), Class: script.ErrNotExecuted, Err: errBack}
		case err != nil || result.changed || fresh:
			return result, err
		}
		known, fresh = result.seen, true
	}
}

// later is how much later than its clock reading a decision may have dated its keys:
// before Redis 7.2 the clock moves within a script.
const later = 2 * time.Millisecond

// runAt runs the script once and notes the server's clock.
func (r *remote) runAt(ctx context.Context, sc *script.Script, node string, keys []string, args ...any) (settled, error) {
	seen := &serverClock{sent: time.Now()}
	reply, err := r.Run(ctx, sc, keys, args...)
	if err != nil { // after ErrConfiguration, some may have changed
		return settled{untouched: errors.Is(err, script.ErrNotExecuted)}, err
	}
	seen.got = time.Now()
	numbers, _ := reply.([]any)
	at, _ := numbers[0].(int64)
	if now, is := outside(numbers); is {
		at = now * 1000
	}
	seen.at = max(at, -at)
	r.clocks.note(node, seen)
	return settled{numbers: numbers, changed: at > 0, seen: seen}, nil
}

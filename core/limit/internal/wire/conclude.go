package wire

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/neap-go/neap/core/internal/reply"
	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/core/script"
)

// MarkerLives is how long a marker lives in Redis. It makes repetitions of a conclusion change
// nothing.
const MarkerLives = 10 * time.Minute

// Conclusion is how a request that was granted ends.
type Conclusion struct {
	*kind.Request

	Settles bool   // or else it gives back
	Actual  int64  // what should have been taken; 0 if it is given back
	Marker  string // names the marker
}

// Concluded is the result of a conclusion.
type Concluded struct {
	Readings  []kind.Reading // after a settlement
	Forgiven  int64          // by the policy that forgave most
	Changed   bool           // something changed, now or in an earlier run
	Untouched bool           // nothing changed, because the script did not run
}

// Conclude runs the script for a conclusion: [Remote.Settle] or [Remote.Late].
func (r *Remote) Conclude(ctx context.Context, sc *script.Script, c *Conclusion) (Concluded, error) {
	sc = sc.Replies(nil, func(told any) bool { return r.gives(c, told) })
	for again := false; ; again = true {
		keys, args := r.ToConclude(c)
		if len(keys) == 1 { // only the marker: all policies are shadows that denied, or PerRequest
			told := slices.Clone(c.Readings)
			for i, rule := range r.set.Rules {
				told[i] = rule.Age(told[i], time.Since(c.Answered).Microseconds())
			}
			return Concluded{Readings: told, Changed: true, Untouched: true}, nil
		}
		var result ran
		var err error
		if c.Actual < c.Cost || c.Token != "" {
			result, err = r.atItsTime(ctx, sc, c.Request, keys, args)
		} else { // the difference is charged now, whatever the time is
			result, err = r.runAt(ctx, sc, r.Inside.Node(ctx, keys[0]), keys, args([]any{"0", "0", "0"})...)
		}
		told := Concluded{Changed: result.changed, Untouched: result.untouched}
		if err != nil || !c.Settles {
			return told, err
		}
		if now, is := outside(result.numbers); is {
			if again {
				return Concluded{Untouched: true}, &script.Error{Script: sc.Name(), Class: script.ErrFailed, Err: errMoves}
			}
			r.set.Seen(now)
			continue
		}
		var ok bool
		if told.Readings, told.Forgiven, ok = r.readSettled(c, result.numbers); !ok {
			err = broken(sc)
		}
		told.Untouched = false
		return told, err
	}
}

// ToConclude returns the keys of limits/settle.lua and a function that makes its arguments
// from what is known of the clock.
func (r *Remote) ToConclude(c *Conclusion) (keys []string, args func(clock []any) []any) {
	rules := r.set.Rules
	behind := []string{r.Space.Key(c.Subject, "settled:"+c.Marker)} // keys that follow those of the policies: the marker, and estimates
	charged := make([]int, 0, len(rules))
	for i, rule := range rules {
		if told := c.Readings[i]; !told.Refused() && (!c.Settles || rule.CanSettle(told)) {
			keys, charged = append(keys, r.Space.Key(c.Subject, rule.Tail)), append(charged, i)
		}
	}
	count := len(keys)
	policies := make([]any, 0, count*(mostNumbers+5))
	for _, i := range charged {
		rule, told, estimates := rules[i], c.Readings[i], 0
		if rule.Lease > 0 {
			behind = append(behind, r.estimatesOf(rule, c.Subject))
			estimates = count + len(behind)
		}
		as, numbers := rule.Kind, rule.Numbers()
		if rule.Moves && c.givesBackOnly(rule) {
			// The decision's own window. Half of its length tells two windows apart, because
			// the next one may be shorter.
			as, numbers = "window", []any{kind.Integer(rule.Limit), kind.Integer(told.N[2] / 2), kind.Integer(rule.Largest)}
		}
		policies = append(policies, as)
		policies = append(policies, filled(numbers)...)
		policies = append(policies, kind.Integer(rule.Unit), kind.Integer(rule.Costs(c.Cost)), kind.Integer(rule.Told(told)), kind.Integer(int64(estimates)))
	}
	return append(keys, behind...), func(clock []any) []any {
		head := append([]any{kind.Integer(c.Actual)}, clock...)
		estimate := ""
		if c.Token != "" {
			estimate = estimateName(c.Token, c.Cost)
		}
		return append(append(head, kind.Integer(int64(count)), kind.Integer(MarkerLives.Milliseconds()), estimate), policies...)
	}
}

// givesBackOnly reports whether the conclusion charges nothing to a calendar's window. A
// settlement whose estimate was taken back charges the present window.
func (c *Conclusion) givesBackOnly(r *kind.Rule) bool {
	return !c.Settles || c.Actual <= c.Cost && r.Lease == 0
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
func (r *Remote) gives(c *Conclusion, told any) (ok bool) {
	all, ok := reply.Numbers(told)
	switch {
	case !ok || len(all) == 0:
		return false
	case len(all) == 1: // the time alone
		return all[0] < 0
	case all[0] == 0:
		return len(all) == 2
	case !c.Settles:
		return true
	}
	many := 2
	for i, rule := range r.set.Rules {
		many += c.width(rule, c.Readings[i])
	}
	return len(all) == many
}

// width returns how many numbers limits/settle.lua replies for a policy in a settlement.
func (c *Conclusion) width(r *kind.Rule, told kind.Reading) int {
	if !r.CanSettle(told) {
		return 0
	}
	if r.Moves && c.givesBackOnly(r) {
		return r.Width - 1 // the script knows only the decision's own window
	}
	return r.Width
}

// readSettled reads the reply of limits/settle.lua to a settlement. ok is false if a record
// is broken.
func (r *Remote) readSettled(c *Conclusion, numbers []any) (readings []kind.Reading, forgiven int64, ok bool) {
	now, forgiven := numbers[0].(int64), numbers[1].(int64)
	numbers = numbers[2:]
	readings = slices.Clone(c.Readings)
	for i, rule := range r.set.Rules {
		width := c.width(rule, readings[i])
		if width == 0 {
			readings[i] = rule.Age(readings[i], time.Since(c.Answered).Microseconds())
			continue
		}
		readings[i] = readSlice(numbers[:width])
		if !rule.Plausible(readings[i]) {
			return nil, 0, false
		}
		if width < rule.Width {
			readings[i].N[2] = rule.Length(max(now, -now) / 1000)
		}
		numbers = numbers[width:]
	}
	return readings, forgiven, true
}

// ran is the result of a run of limits/settle.lua.
type ran struct {
	numbers   []any
	changed   bool // something changed, now or in an earlier run
	untouched bool // nothing changed, because the script did not run
	seen      *serverClock
}

// atItsTime runs the script with what is known of the server's clock: the soonest and the
// latest time at which the decision was made, and what the clock shows now. If the reply
// says that the server has another clock, it runs the script again.
func (r *Remote) atItsTime(ctx context.Context, sc *script.Script, of *kind.Request, keys []string, args func(clock []any) []any) (ran, error) {
	node := r.Inside.Node(ctx, keys[0])
	known, ok := r.clocks.Find(node, "")
	fresh := !ok || known.vague(of)
	if fresh {
		asked, err := r.runAt(ctx, sc, node, keys[:1], "0", "0", "0", "0", "0", "0", "")
		if err != nil {
			return ran{untouched: true}, err // the call only asked for the time
		}
		known = asked.seen
	}
	for {
		now := time.Now()
		at, sent := known.between(of.Asked, of.Answered.Add(later)), known.between(now, now).Soonest
		result, err := r.runAt(ctx, sc, node, keys, args([]any{kind.Integer(at.Soonest), kind.Integer(at.Latest), kind.Integer(sent)})...)
		switch {
		case err == nil && fresh && len(result.numbers) == 1:
			return ran{untouched: true}, &script.Error{Script: sc.Name(), Class: script.ErrNotExecuted, Err: errBack}
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
func (r *Remote) runAt(ctx context.Context, sc *script.Script, node string, keys []string, args ...any) (ran, error) {
	seen := &serverClock{sent: time.Now()}
	reply, err := r.Run(ctx, sc, keys, args...)
	if err != nil { // after ErrConfiguration, some may have changed
		return ran{untouched: errors.Is(err, script.ErrNotExecuted)}, err
	}
	seen.got = time.Now()
	numbers, _ := reply.([]any)
	at, _ := numbers[0].(int64)
	if now, is := outside(numbers); is {
		at = now * 1000
	}
	seen.at = max(at, -at)
	r.clocks.Put(node, "", seen)
	return ran{numbers: numbers, changed: at > 0, seen: seen}, nil
}

// Package wire is how a limiter asks Redis: its scripts, and what of a request, a settlement or a
// ban they are given and answer. It knows rules and readings, and nothing of what a limiter makes
// of them.
package wire

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/call"
	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/internal/token"
	"github.com/neap-go/neap/core/limit/internal/cache"
	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

var (
	errRecord = errors.New("the key holds no record of this policy")
	errBack   = errors.New("the clock of Redis went back between two calls: is it being set?")
	errMoves  = errors.New("the clock of Redis left three windows of the calendar between two calls: is it being set?")
)

// broken returns the error for numbers that no record of neap gives.
func broken(s *script.Script) error {
	return &script.Error{Script: s.Name(), Class: script.ErrFailed, Err: errRecord}
}

// Asker runs the scripts of a limiter, and of all limiters that With made from it.
type Asker struct {
	*ask.Decider

	clocks *cache.Cache[*serverClock] // the last readings, by the server's address
}

// NewAsker returns an asker whose calls take so long at most.
func NewAsker(st *store.Store, budget time.Duration) *Asker {
	return &Asker{ask.NewDecider(st, budget), cache.New[*serverClock](mostClocks)}
}

// Remote keeps the state of a set in Redis. Each decision is one call of a script.
type Remote struct {
	*Asker

	Space  keyspace.Space
	Script *script.Script // decides
	Settle *script.Script // settles and refunds decisions
	Late   *script.Script // does the same in the background, where it passes an open breaker
	Alone  bool           // the script is limit_<kind>.lua

	set    *kind.Set
	common []any // the arguments before the costs; nil if they change
	args   []any // for a cost of one permit; nil if they change
}

// remoteCall is the memory that a decision needs until Redis has answered it.
type remoteCall struct {
	call.Call

	keys [kind.Few]string
	text strings.Builder // the keys are parts of it
}

// remoteCalls are calls that nothing refers to any more.
var remoteCalls = sync.Pool{New: func() any { return new(remoteCall) }}

// New returns what asks about a set.
func New(at *Asker, space keyspace.Space, set *kind.Set) *Remote {
	r := &Remote{Asker: at, Space: space, set: set}
	first := set.Rules[0]
	r.Alone = len(set.Rules) == 1 && !first.Shadow && bars(set) == 0 && !set.Leases && first.Packs
	if r.Alone {
		r.Script = loneScript(first)
	} else {
		r.Script = takeScript(set)
	}
	r.Script = r.Script.Replies(r.replies())
	r.Settle, r.Late = settleScripts(set.Rules)
	if !set.Moves {
		r.common = r.Common()
		r.args = r.Args(1, "")
	}
	return r
}

// Common returns the arguments of the script that are before the costs.
func (r *Remote) Common() []any {
	if r.Alone {
		return slices.Clip(r.set.Rules[0].Numbers())
	}
	enforced, barring, leases := 0, []any(nil), []any(nil)
	args, told := []any{strconv.Itoa(len(r.set.Rules)), nil, nil, nil, nil}, 0
	for i, rule := range r.set.Rules {
		if !rule.Shadow {
			enforced++
		}
		told += toldWidth(rule)
		args = append(append(args, rule.Kind), filled(rule.Numbers())...)
		if rule.Lease > 0 {
			leases = append(leases, strconv.Itoa(i+1), kind.Integer(rule.Lease.Milliseconds()))
		}
	}
	for _, b := range r.set.Bars {
		told += toldOfBar
		barring = append(barring, strconv.Itoa(b.Rule+1), kind.Integer(b.After), kind.Integer(b.Within), kind.Integer(b.First), kind.Integer(b.Most))
	}
	if r.set.Overrides {
		told += toldOfBar
		barring = append(barring, "1", "-1", r.set.Override, "0", "0")
	}
	args[1], args[2], args[3], args[4] = strconv.Itoa(enforced), strconv.Itoa(bars(r.set)), strconv.Itoa(len(leases)/2), strconv.Itoa(told)
	return slices.Concat(args, barring, leases)
}

// bars returns how many bars scripts read: those of the set, and the policies of a subject.
func bars(set *kind.Set) int {
	if set.Overrides {
		return len(set.Bars) + 1
	}
	return len(set.Bars)
}

// filled returns the numbers of a policy as scripts of several kinds take them.
func filled(numbers []any) []any {
	numbers = slices.Clip(numbers)
	for len(numbers) < mostNumbers {
		numbers = append(numbers, "0")
	}
	return numbers
}

// Args returns the arguments of the script for a cost; -n asks about n permits. The token
// names the estimates.
func (r *Remote) Args(cost int64, token string) []any {
	if cost == 1 && r.args != nil && token == "" {
		return r.args
	}
	common := r.common
	if common == nil {
		common = r.Common()
	}
	rules := r.set.Rules
	args := make([]any, len(common), len(common)+len(rules)+2)
	copy(args, common)
	for _, rule := range rules {
		units := rule.Units(cost)
		if r.Alone && !rule.Entries { // the reply to no cost answers all questions
			units = max(units, 0)
		}
		args = append(args, kind.Integer(units))
	}
	if !r.Alone {
		args = append(args, "1")
	}
	if r.set.Leases {
		args = append(args, estimateName(token, cost))
	}
	return args
}

// Keys returns the keys of a subject.
func (r *Remote) Keys(subject string) []string { return r.keysIn(new(remoteCall), subject) }

// keysIn makes the keys of a subject, in the memory of q.
func (r *Remote) keysIn(q *remoteCall, subject string) []string {
	if r.Alone {
		return append(q.keys[:0], r.Space.KeyIn(&q.text, subject, r.set.Rules[0].Tail))
	}
	keys := q.keys[:0]
	for _, rule := range r.set.Rules {
		keys = append(keys, r.Space.Key(subject, rule.Tail))
	}
	for _, b := range r.set.Bars {
		keys = append(keys, r.Space.Key(subject, b.Tail))
	}
	if r.set.Overrides {
		keys = append(keys, r.Space.Key(subject, OverrideTail))
	}
	if r.set.Leases {
		for _, rule := range r.set.Rules {
			if rule.Lease > 0 {
				keys = append(keys, r.estimatesOf(rule, subject))
			}
		}
	}
	return keys
}

// Take decides a request. If the clock of Redis is in none of a calendar's windows, it asks
// once more, within the same budget.
func (r *Remote) Take(ctx context.Context, of *kind.Request) error {
	if r.set.Leases {
		of.Token = token.New()
	}
	for again := false; ; again = true {
		q := remoteCalls.Get().(*remoteCall)
		q.Asked = of.Asked
		if err := r.Do(ctx, &q.Call, r.Script, r.keysIn(q, of.Subject), r.Args(of.Asks(), of.Token)...); err != nil {
			return err // do not reuse q: a client may still refer to it
		}
		now, moved := int64(0), false
		if r.set.Moves {
			now, moved = onlyTime(&q.Call)
		}
		switch {
		case moved && !again:
			r.set.Seen(now)
		case moved:
			return &script.Error{Script: r.Script.Name(), Class: script.ErrFailed, Err: errMoves}
		case !r.read(&q.Call, of.Asks(), of.Readings):
			return r.unread(&q.Call)
		}
		if q.Reset() {
			remoteCalls.Put(q)
		}
		if !moved {
			return nil
		}
	}
}

// onlyTime returns what the clock of Redis shows if the reply is nothing else, because that
// time is in none of a calendar's windows.
func onlyTime(told *call.Call) (now int64, is bool) {
	if numbers, _ := told.Told(); numbers != nil {
		return numbers[0], len(numbers) == 1
	}
	one, _ := told.Reply().([]any)
	if len(one) != 1 {
		return 0, false
	}
	now, is = one[0].(int64)
	return now, is
}

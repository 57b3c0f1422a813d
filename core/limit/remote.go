package limit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/neap-go/neap/core/internal/call"
	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/internal/reply"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

var setScript = script.FromFS(lua.FS, "limit_set.lua").Batched()

// listing are the scripts for one policy that may reply with a list.
var listing = []*script.Script{logScript, keptBucketScript, slidingScript, keptSlidingScript}

var (
	errRecord = errors.New("the key holds no record of this policy")
	errBack   = errors.New("the clock of Redis went back between two calls: is it being set?")
	errMoves  = errors.New("the clock of Redis left three windows of the calendar between two calls: is it being set?")
)

// broken returns the error for numbers that no record of neap gives.
func broken(s *script.Script) error {
	return &script.Error{Script: s.Name(), Class: script.ErrFailed, Err: errRecord}
}

// remote keeps the state in Redis. Each decision is one call of a script.
type remote struct {
	*asker

	space  keyspace.Space
	script *script.Script
	alone  bool
	lists  bool  // the script of its one policy may reply with a list
	moves  bool  // the arguments change with the time
	leased bool  // the arguments name the decision's estimates
	args   []any // for a cost of one permit; nil if the arguments change
}

// remoteCall is the memory that a decision needs until Redis has answered it.
type remoteCall struct {
	call.Call

	keys [fewRules]string
	text strings.Builder // the keys are parts of it
}

// remoteCalls are calls that nothing refers to any more.
var remoteCalls = sync.Pool{New: func() any { return new(remoteCall) }}

func newRemote(at *asker, space keyspace.Space, rules []rule) *remote {
	r := &remote{asker: at, space: space, script: setScript}
	r.moves, r.leased = slices.ContainsFunc(rules, isCalendar), slices.ContainsFunc(rules, hasLease)
	if len(rules) == 1 && !rules[0].id().shadow && !hasBan(rules[0]) && !r.leased && rules[0].alone() != nil {
		r.alone = true
		r.script = rules[0].alone()
		r.lists = slices.Contains(listing, r.script)
	}
	r.script = r.script.Replies(r.replies(rules))
	if !r.moves && !r.leased {
		r.args = r.argsOf(rules, 1, "")
	}
	return r
}

// argsOf returns the arguments of the script for a cost. The token names the estimates.
func (r *remote) argsOf(rules []rule, cost int64, token string) []any {
	switch {
	case cost == 1 && r.args != nil:
		return r.args
	case r.alone:
		return rules[0].args(rules[0].id().costs(cost))
	case r.args != nil:
		return append([]any{integer(cost)}, r.args[1:]...)
	}
	enforced, plain := 0, true
	args, more := []any{integer(cost), nil, strconv.Itoa(len(rules))}, []any(nil)
	for _, rule := range rules {
		id := rule.id()
		if !id.shadow {
			enforced++
		}
		entry, once := rule.entry(), "0"
		if id.once {
			once = "1"
		}
		plain = plain && !id.once && rule.most() == id.limit*id.unit
		args, more = append(args, entry[:]...), append(more, integer(rule.most()), once)
	}
	for i, rule := range rules {
		if b := rule.id().ban; b != nil {
			args = append(args, strconv.Itoa(i+1), b.numbers)
		}
	}
	for i, rule := range rules {
		if hasLease(rule) {
			args = append(args, strconv.Itoa(i+1), fmt.Sprintf("%d/%s", rule.id().lease.Milliseconds(), token))
		}
	}
	args[1] = strconv.Itoa(enforced)
	if !plain {
		args = append(args, more...)
	}
	return args
}

func isCalendar(r rule) bool {
	_, is := r.(*calendar)
	return is
}

func (r *remote) keys(l *Limiter, subject string) []string {
	return r.keysIn(new(remoteCall), l, subject)
}

// keysIn makes the keys of a subject, in the memory of q.
func (r *remote) keysIn(q *remoteCall, l *Limiter, subject string) []string {
	if r.alone {
		return append(q.keys[:0], r.space.KeyIn(&q.text, subject, l.rules[0].id().tail))
	}
	keys := q.keys[:0]
	for _, rule := range l.rules {
		keys = append(keys, r.space.Key(subject, rule.id().tail))
	}
	keys = append(keys, r.bansOf(l.rules, subject)...)
	if r.leased {
		for _, rule := range l.rules {
			if hasLease(rule) {
				keys = append(keys, r.estimatesOf(rule, subject))
			}
		}
	}
	return keys
}

// take decides. If the clock of Redis is in none of a calendar's windows, it asks once
// more, within the same budget.
func (r *remote) take(ctx context.Context, l *Limiter, g *grant) error {
	g.token = l.newToken()
	for again := false; ; again = true {
		q := remoteCalls.Get().(*remoteCall)
		q.Asked = g.asked
		if err := r.Do(ctx, &q.Call, r.script, r.keysIn(q, l, g.subject), r.argsOf(l.rules, g.asks(), g.token)...); err != nil {
			return err // do not reuse q: a client may still refer to it
		}
		now, moved := int64(0), false
		if r.moves {
			now, moved = onlyTime(q.Reply())
		}
		switch {
		case moved && !again:
			l.seen(now)
		case moved:
			return &script.Error{Script: r.script.Name(), Class: script.ErrFailed, Err: errMoves}
		case !r.read(l.rules, &q.Call, g.readings):
			return broken(r.script)
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
func onlyTime(told any) (now int64, is bool) {
	one, _ := told.([]any)
	if len(one) != 1 {
		return 0, false
	}
	now, is = one[0].(int64)
	return now, is
}

// replies returns what the script replies to a decision, for [script.Script.Replies].
func (r *remote) replies(rules []rule) (number func(n int64) bool, other func(told any) bool) {
	many := 0
	for _, rule := range rules {
		if many += rule.width(); hasBan(rule) {
			many++
		}
	}
	list := reply.List(many, reply.Any)
	if r.alone {
		if _, packs := rules[0].unpack(0); packs {
			number = reply.Any
		}
	}
	return number, func(told any) bool {
		if text, is := told.(string); is && r.alone {
			_, ok := rules[0].unpackText(text)
			return ok
		}
		_, moved := onlyTime(told)
		return moved && r.moves || (!r.alone || r.lists) && list(told)
	}
}

// read reads a decision. ok is false if a record is broken.
func (r *remote) read(rules []rule, told *call.Call, into []reading) (ok bool) {
	if n, is := told.Int(); is {
		into[0], ok = rules[0].unpack(n)
		return ok
	}
	list := told.Reply()
	if text, is := list.(string); is {
		into[0], ok = rules[0].unpackText(text)
		return ok
	}
	numbers := list.([]any)
	for i, rule := range rules {
		into[i] = readSlice(numbers[:rule.width()])
		if !plausible(rule, into[i]) {
			return false
		}
		numbers = numbers[rule.width():]
	}
	return readBans(rules, numbers, into)
}

// plausible reports whether state can use a reading. The state of a keptBucket divides by
// numbers of its record, and that of a sliding window multiplies with them.
func plausible(r rule, told reading) bool {
	switch r := r.(type) {
	case *keptBucket:
		return told.n[2] > 0 && told.n[3] > 0 && fits(max(told.n[0], 1), told.n[3])
	case *sliding:
		return min(told.n[0], told.n[1]) >= 0 && fits(max(told.n[0], told.n[1], 1), r.length)
	}
	return true
}

// readSlice reads the numbers of one policy.
func readSlice(numbers []any) (r reading) {
	for i, number := range numbers {
		r.n[i] = number.(int64)
	}
	r.n[0], r.denied = reply.Signed(r.n[0])
	return r
}

package limit

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/neap-go/neap/core/internal/call"
	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/internal/reply"
	"github.com/neap-go/neap/core/script"
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

// remote keeps the state in Redis. Each decision is one call of a script.
type remote struct {
	*asker

	space  keyspace.Space
	script *script.Script
	settle *script.Script // settles and refunds decisions
	late   *script.Script // does the same in the background, where it passes an open breaker
	alone  bool           // the script is limit_<kind>.lua
	moves  bool           // the arguments change with the time
	leased bool           // the arguments name the decision's estimates
	common []any          // the arguments before the costs; nil if they change
	args   []any          // for a cost of one permit; nil if they change
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
	r := &remote{asker: at, space: space}
	r.moves, r.leased = slices.ContainsFunc(rules, isCalendar), slices.ContainsFunc(rules, hasLease)
	r.alone = len(rules) == 1 && !rules[0].id().shadow && !hasBan(rules[0]) && !r.leased && rules[0].packs()
	if r.alone {
		r.script = loneScript(rules[0])
	} else {
		r.script = takeScript(rules)
	}
	r.script = r.script.Replies(r.replies(rules))
	r.settle, r.late = settleScripts(rules)
	if !r.moves {
		r.common = r.commonOf(rules)
		r.args = r.argsOf(rules, 1, "")
	}
	return r
}

// commonOf returns the arguments of the script that are before the costs.
func (r *remote) commonOf(rules []rule) []any {
	if r.alone {
		return slices.Clip(rules[0].numbers())
	}
	enforced, bans, leases := 0, []any(nil), []any(nil)
	args, told := []any{strconv.Itoa(len(rules)), nil, nil, nil, nil}, 0
	for i, rule := range rules {
		id := rule.id()
		if !id.shadow {
			enforced++
		}
		told += toldWidth(rule)
		args = append(append(args, rule.kind()), filled(rule.numbers())...)
		if b := id.ban; b != nil {
			bans = append(bans, strconv.Itoa(i+1), integer(b.after), integer(b.within), integer(b.first), integer(b.most))
		}
		if hasLease(rule) {
			leases = append(leases, strconv.Itoa(i+1), integer(id.lease.Milliseconds()))
		}
	}
	told += toldOfBan * len(bans) / 5
	args[1], args[2], args[3], args[4] = strconv.Itoa(enforced), strconv.Itoa(len(bans)/5), strconv.Itoa(len(leases)/2), strconv.Itoa(told)
	return slices.Concat(args, bans, leases)
}

// filled returns the numbers of a policy as scripts of several kinds take them.
func filled(numbers []any) []any {
	numbers = slices.Clip(numbers)
	for len(numbers) < mostNumbers {
		numbers = append(numbers, "0")
	}
	return numbers
}

// argsOf returns the arguments of the script for a cost; -n asks about n permits. The token
// names the estimates.
func (r *remote) argsOf(rules []rule, cost int64, token string) []any {
	if cost == 1 && r.args != nil && token == "" {
		return r.args
	}
	common := r.common
	if common == nil {
		common = r.commonOf(rules)
	}
	args := make([]any, len(common), len(common)+len(rules)+2)
	copy(args, common)
	for _, rule := range rules {
		units := unitsOf(rule, cost)
		if r.alone && rule.kind() != "log" { // the reply to no cost answers all questions
			units = max(units, 0)
		}
		args = append(args, integer(units))
	}
	if !r.alone {
		args = append(args, "1")
	}
	if r.leased {
		args = append(args, estimateName(token, cost))
	}
	return args
}

// unitsOf returns what a request of that cost costs a rule, in its units. All that is above
// the limit is denied alike.
func unitsOf(r rule, cost int64) int64 {
	id := r.id()
	return max(min(id.costs(cost), id.limit+1), -id.limit-1) * id.unit
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
			now, moved = onlyTime(&q.Call)
		}
		switch {
		case moved && !again:
			l.seen(now)
		case moved:
			return &script.Error{Script: r.script.Name(), Class: script.ErrFailed, Err: errMoves}
		case !r.read(l.rules, &q.Call, g.asks(), g.readings):
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

// replies returns what the script replies to a decision, for [script.Script.Replies].
func (r *remote) replies(rules []rule) (number func(n int64) bool, other func(told any) bool) {
	many := 0
	for _, rule := range rules {
		if many += toldWidth(rule); hasBan(rule) {
			many += toldOfBan
		}
	}
	if r.alone {
		many = widthOf(rules[0])
		if _, packs := rules[0].unpack(0); packs {
			number = reply.Any
		}
	}
	list, time := reply.List(many, reply.Any), reply.List(1, reply.Any)
	return number, func(told any) bool {
		if text, is := told.(string); is && r.alone {
			_, ok := rules[0].unpackText(text)
			return ok
		}
		return list(told) && (!r.alone || many > 2 && !r.moves) || r.moves && time(told)
	}
}

// read reads a decision. ok is false if a record is broken.
func (r *remote) read(rules []rule, told *call.Call, cost int64, into []reading) (ok bool) {
	if numbers, place := told.Told(); numbers != nil {
		return readTold(rules, numbers, place, cost, into)
	}
	if n, is := told.Int(); is {
		into[0], ok = rules[0].unpack(n)
		return ok
	}
	list := told.Reply()
	if text, is := list.(string); is {
		into[0], ok = rules[0].unpackText(text)
		return ok
	}
	if r.alone {
		into[0] = readSlice(list.([]any))
		return plausible(rules[0], into[0])
	}
	var few [4 * fewRules]int64
	numbers := few[:0]
	for _, number := range list.([]any) {
		numbers = append(numbers, number.(int64))
	}
	return readTold(rules, numbers, 1, cost, into)
}

// readTold reads what limits/take.lua told of a run, for the request at that place in it,
// from 1 on.
func readTold(rules []rule, numbers []int64, place, cost int64, into []reading) (ok bool) {
	if numbers[0] < 0 {
		return false
	}
	bans, granted := numbers, int64(math.MaxInt64) // what the enforced policies grant
	for _, r := range rules {
		if !r.id().shadow {
			granted = min(granted, bans[0])
		}
		bans = bans[toldWidth(r):]
	}
	rest := bans
	for _, r := range rules {
		if hasBan(r) {
			if rest[0] > 0 && !r.id().shadow {
				granted = 0
			}
			rest = rest[toldOfBan:]
		}
	}
	for i, r := range rules {
		var ban, left int64
		if hasBan(r) {
			if left = bans[0]; left > 0 {
				ban = left
			} else if bans[1] > 0 && place >= bans[2] {
				ban = bans[1]
			}
			if !isBan(bans[0]) || !isBan(bans[1]) {
				return false
			}
			bans = bans[toldOfBan:]
		}
		fits, charged := numbers[0], min(granted, numbers[0])
		if left > 0 || cost <= 0 {
			charged = 0
		}
		into[i] = r.told(numbers[1:], max(charged-place, 0)*unitsOf(r, cost), place <= charged)
		into[i].denied, into[i].ban = place > fits, ban
		if !plausible(r, into[i]) {
			return false
		}
		numbers = numbers[toldWidth(r):]
	}
	return true
}

// plausible reports whether state can use a reading. The state of a keptBucket divides by
// numbers of its record, and that of a sliding window multiplies with them.
func plausible(r rule, told reading) bool {
	switch r := r.(type) {
	case *keptBucket:
		return min(told.n[0], told.n[1]) >= 0 && told.n[2] > 0 && told.n[3] > 0 && fits(max(told.n[0], 1), told.n[3])
	case *sliding:
		return min(told.n[0], told.n[1]) >= 0 && fits(max(told.n[0], told.n[1], 1), r.length)
	case *slidingLog:
		return told.n[0] >= 0 && told.n[0] <= r.limit
	}
	return min(told.n[0], told.n[1]) >= 0
}

// readSlice reads the numbers of one policy.
func readSlice(numbers []any) (r reading) {
	for i, number := range numbers {
		r.n[i] = number.(int64)
	}
	r.n[0], r.denied = reply.Signed(r.n[0])
	return r
}

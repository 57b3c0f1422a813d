package limit

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

var (
	setScript    = script.FromFS(lua.FS, "limit_set.lua").Batched()
	refundScript = script.FromFS(lua.FS, "limit_refund.lua").Batched()
)

var errReply = errors.New("the reply is not a decision: is the client really connected to Redis?")

// remote keeps the state in Redis: one script call a decision.
type remote struct {
	*asker

	space  keyspace.Space
	script *script.Script
	alone  bool
	args   []any // for a cost of one permit
}

// remoteCall is the memory of a decision until Redis has answered it.
type remoteCall struct {
	script.Call

	keys [fewRules]string
	text strings.Builder // which the keys are parts of
}

// remoteCalls are those that nothing holds any more.
var remoteCalls = sync.Pool{New: func() any { return new(remoteCall) }}

func newRemote(at *asker, space keyspace.Space, rules []rule) *remote {
	r := &remote{asker: at, space: space, script: setScript}
	if len(rules) == 1 && !rules[0].id().shadow && rules[0].alone() != nil {
		r.alone = true
		r.script = rules[0].alone()
		r.args = rules[0].args(1)
		return r
	}
	enforced := 0
	r.args = []any{integer(1), nil}
	for _, rule := range rules {
		if !rule.id().shadow {
			enforced++
		}
		entry := rule.entry()
		r.args = append(r.args, entry[:]...)
	}
	r.args[1] = strconv.Itoa(enforced)
	return r
}

func (r *remote) keys(l *Limiter, subject string) []string {
	return r.keysIn(new(remoteCall), l, subject)
}

// keysIn makes the keys of a subject, in the memory of the call if that may be used again.
func (r *remote) keysIn(q *remoteCall, l *Limiter, subject string) []string {
	if r.alone {
		return append(q.keys[:0], r.space.KeyIn(&q.text, subject, l.rules[0].id().tail))
	}
	keys := q.keys[:0]
	for _, rule := range l.rules {
		keys = append(keys, r.space.Key(subject, rule.id().tail))
	}
	return keys
}

func (r *remote) take(ctx context.Context, l *Limiter, g *grant) error {
	args := r.args
	switch {
	case g.cost == 1:
	case r.alone:
		args = l.rules[0].args(g.cost)
	default:
		args = append([]any{integer(g.cost)}, args[1:]...)
	}
	q := remoteCalls.Get().(*remoteCall)
	q.Asked = g.asked
	if err := r.Do(ctx, &q.Call, r.script, r.keysIn(q, l, g.subject), args...); err != nil {
		return err // a client may hold the call
	}
	if !r.read(l.rules, &q.Call, g.readings) {
		return &script.Error{Script: r.script.Name(), Class: script.ErrFailed, Err: errReply}
	}
	if q.Reset() {
		remoteCalls.Put(q)
	}
	return nil
}

func (r *remote) read(rules []rule, call *script.Call, into []reading) (ok bool) {
	if n, is := call.Int(); is && r.alone {
		into[0], ok = rules[0].unpack(n)
		return ok
	}
	reply := call.Reply()
	if text, is := reply.(string); is && r.alone {
		into[0], ok = rules[0].unpackText(text)
		return ok
	}
	numbers, _ := reply.([]any)
	if r.alone && r.script != logScript {
		return false
	}
	for i, rule := range rules {
		if len(numbers) < rule.width() {
			return false
		}
		if into[i], ok = readSlice(numbers[:rule.width()]); !ok {
			return false
		}
		numbers = numbers[rule.width():]
	}
	return len(numbers) == 0
}

// readSlice reads the numbers of one policy.
func readSlice(numbers []any) (r reading, ok bool) {
	for i, number := range numbers {
		if r.n[i], ok = number.(int64); !ok {
			return r, false
		}
	}
	r.n[0], r.denied = readSigned(r.n[0])
	return r, true
}

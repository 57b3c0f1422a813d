package gate

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/neap-go/neap/internal/isnil"
)

// Chain makes one gate of several. The first gate is the outermost.
//
// A request runs if all of them let it run. The first gate that replies ends the chain.
// The gates before it are left at once: their Leave is called with that reply, or with
// nil if Enter of a later gate panics.
//
// The response has the header fields of all of them, also if it is a refusal. A later
// gate sees the context that an earlier one made. Each Leave gets no more of the body
// than its own gate asked for. Each Leave is called exactly once, inner gates first, even
// if the Leave of an inner gate panics.
//
// Chain panics on a nil gate. A chain of no gates lets every request run.
func Chain(gates ...Gate) Gate {
	for i, g := range gates {
		if isnil.Value(g) {
			panic("gate.Chain: gates[" + strconv.Itoa(i) + "] is nil; leave it out")
		}
	}
	return append(chain{}, gates...)
}

type chain []Gate

func (c chain) kinds() (all []Kind, known bool) {
	for _, g := range c {
		own, known := Kinds(g)
		if !known {
			return nil, false
		}
		all = append(all, own...)
	}
	return all, true
}

func (c chain) Enter(r Request) Pass {
	var all Pass
	var left leaves
	entered := false
	defer func() {
		if !entered {
			left.run(nil)
		}
	}()
	for _, g := range c {
		p := g.Enter(r)
		all.Header = appendFields(all.Header, p.Header)
		if p.Reply != nil {
			entered = true
			reply := *p.Reply
			reply.Header = resolve(appendFields(all.Header, reply.Header))
			seen := reply.Sent()
			if r.Method() == "HEAD" {
				seen.Body = nil
			}
			left.run(&seen)
			return Pass{Reply: &reply, Denial: p.Denial}
		}
		if p.Context != nil {
			all.Context = p.Context
			r = nested{Request: r, ctx: p.Context}
		}
		if p.Leave != nil {
			left = append(left, leave{call: p.Leave, capture: p.Capture})
			all.Capture = max(all.Capture, p.Capture)
		}
	}
	entered = true
	if len(left) > 0 {
		all.Leave = left.run
	}
	return all
}

// leaves are the Leave functions of a chain, outermost first.
type leaves []leave

type leave struct {
	call    func(*Reply)
	capture int64
}

// run defers the calls instead of making them: deferred calls run in reverse order, and
// they go on after one of them has panicked.
func (l leaves) run(reply *Reply) {
	for _, one := range l {
		defer one.run(reply)
	}
}

func (l leave) run(reply *Reply) {
	if reply == nil {
		l.call(nil)
		return
	}
	own := *reply
	if int64(len(own.Body)) > l.capture {
		own.Body = own.Body[:l.capture:l.capture]
		own.Partial = true
	}
	l.call(&own)
}

// appendFields appends to the fields that a gate returned, without writing into that
// slice: the gate may keep it.
func appendFields(to, more []Field) []Field {
	switch {
	case len(more) == 0:
		return to
	case len(to) == 0:
		return slices.Clip(more)
	}
	return append(to, more...)
}

// resolve drops each field that a later one replaces, so that a Leave sees the same lines
// as the client.
func resolve(fields []Field) []Field {
	if len(fields) < 2 {
		return fields
	}
	kept := make([]Field, 0, len(fields))
	for i, f := range fields {
		replaced := slices.ContainsFunc(fields[i+1:], func(later Field) bool {
			return !later.Add && strings.EqualFold(later.Name, f.Name)
		})
		if !replaced {
			kept = append(kept, f)
		}
	}
	return kept
}

// nested is a request as seen by the gates behind one that made a context.
type nested struct {
	Request
	ctx context.Context
}

func (n nested) Context() context.Context { return n.ctx }

func (n nested) Value(key any) any {
	if v := n.ctx.Value(key); v != nil {
		return v
	}
	return n.Request.Value(key)
}

func (n nested) Unwrap() Request { return n.Request }

// Unwrap returns the request that the adapter made. It removes what a [Chain] has put
// around it. An adapter that looks for its own type in a Request must unwrap it first.
func Unwrap(r Request) Request {
	for {
		w, ok := r.(interface{ Unwrap() Request })
		if !ok {
			return r
		}
		r = w.Unwrap()
	}
}

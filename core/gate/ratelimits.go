package gate

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/neap-go/neap/core/internal/undo"
	"github.com/neap-go/neap/core/limit"
)

// RateLimits makes one gate from several gates of [RateLimit], each with a key of its
// own: for example one limit for everybody, one for a plan and one for a user.
//
// A request takes permits of all of them or of none, as [limit.All] says, which also says
// what that costs. The limits are asked at the same time. If one denies, what the others
// granted is given back before the request is answered. In a [Chain], by contrast, a
// request that an inner limit denies has taken a permit of each outer limit.
//
// Each gate keeps its options, except Wait. A gate is left out if it skips the request,
// or if the request costs 0 there.
//
// The gate that denies makes the answer. If several deny, the one with the longest wait
// makes it. An error of Redis is answered by the first of the gates that are not left
// out. If permits could not be given back at once, OnError of the gate that makes the
// answer is told, and they are given back in the background. It is told again if that is
// given up.
//
// An admitted request has one list of each IETF field, with the policies of all gates, so
// give the policies different names. The older fields are those of the limit that binds,
// and so are all fields of a denial.
//
// RateLimits panics at wiring on no gates, on a nil gate and on a gate with a Wait.
func RateLimits(limits ...RateLimitGate) Gate {
	if len(limits) == 0 {
		panic("gate.RateLimits: limits is empty: give gates that gate.RateLimit made")
	}
	all := make(rateLimits, len(limits))
	for i, g := range limits {
		if g == nil {
			panic(fmt.Sprintf("gate.RateLimits: limits[%d] is nil: give a gate that gate.RateLimit made", i))
		}
		all[i] = g.rateLimit()
		if all[i].opts.Wait > 0 {
			panic(fmt.Sprintf("gate.RateLimits: limits[%d] has RateLimitOptions.Wait: leave it out, since several limits have no common queue", i))
		}
	}
	return all
}

type rateLimits []*rateLimit

func (all rateLimits) Enter(r Request) Pass {
	asked := make(rateLimits, 0, len(all))
	asks := make([]limit.Ask, 0, len(all))
	for _, g := range all {
		if g.skips(r) {
			continue
		}
		ask, err := g.ask(r)
		if err != nil {
			return g.answers.refuse(r, err)
		}
		if ask.Cost != 0 {
			g.twice.warn(r)
			asked, asks = append(asked, g), append(asks, ask)
		}
	}
	if len(asked) == 0 {
		return Pass{}
	}
	ctx, owe := asked.owing(r)
	joint, err := limit.All(ctx, asks...)
	if err != nil {
		owe(asked[0])
		return asked[0].failed(r, err)
	}
	for i, d := range joint.Decisions {
		if d.Degraded {
			asked[i].answers.tell(r, d.Cause)
		}
	}
	if !joint.Allowed {
		g := asked[joint.Binds]
		if joint.Kept != nil {
			owe(g)
			g.answers.tell(r, joint.Kept)
		}
		return g.exceeded(r, joint.Decision())
	}
	admitted := make(chain, len(asked))
	for i, g := range asked {
		admitted[i] = decided(func(r Request) Pass { return g.twice.mark(r, g.admitted(r, asks[i], joint.Decisions[i])) })
	}
	pass := admitted.Enter(r)
	pass.Header = lists(pass.Header, asked[joint.Binds].opts.Headers.fields(&joint.Decisions[joint.Binds], 0))
	return pass
}

// owing returns a context in which permits are given back, and a function that says which
// gate answers for those that could not be given back at once. OnError of that gate is told
// if they are given up.
func (all rateLimits) owing(r Request) (ctx context.Context, owe func(g *rateLimit)) {
	if !slices.ContainsFunc(all, func(g *rateLimit) bool { return g.opts.OnError != nil }) {
		return r.Context(), func(*rateLimit) {}
	}
	var tell atomic.Pointer[func(error)]
	ctx = undo.WithDropped(r.Context(), func(err error) {
		if by := tell.Load(); by != nil {
			(*by)(err)
		}
	})
	return ctx, func(g *rateLimit) {
		asked := snapshotOf(r)
		by := func(err error) { g.answers.tell(asked, err) }
		tell.Store(&by)
	}
}

// decided is a gate whose decision has been made.
type decided func(Request) Pass

func (d decided) Enter(r Request) Pass { return d(r) }

// lists returns one line for each field: a list of the lines that are added, and for any
// other field the line of the limit that binds.
func lists(fields, binding []Field) []Field {
	var lines []Field
	at := make(map[string]int, len(fields))
	for _, f := range fields {
		i, known := at[f.Name]
		switch {
		case !known:
			at[f.Name] = len(lines)
			lines = append(lines, f)
		case f.Add:
			lines[i].Value += ", " + f.Value
		}
	}
	for _, f := range binding {
		if !f.Add {
			lines[at[f.Name]].Value = f.Value
		}
	}
	return lines
}

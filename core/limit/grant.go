package limit

import (
	"sync/atomic"
	"time"
)

// grant is what a decision keeps for Refund and Settle.
type grant struct {
	of              *Limiter
	subject         string
	cost            int64
	token           string // names its estimates
	at              int64  // when it was decided, by the local clock; for local decisions
	peek            bool
	open            bool // admitted by store.FailOpen
	denied          bool
	local           bool
	conclusion      atomic.Pointer[conclusion] // nil while it is unspent
	kept            *renewals                  // nil if it has no estimates
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

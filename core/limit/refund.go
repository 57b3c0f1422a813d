package limit

import (
	"sync/atomic"
	"time"
)

// grant is what a decision remembers of itself, for Refund.
type grant struct {
	subject         string
	cost            int64
	local           bool
	asked, answered time.Time
	spent           atomic.Bool
	readings        []reading
	few             [4]reading
}

func newGrant(subject string, cost int64, rules int) *grant {
	g := &grant{subject: subject, cost: cost}
	if rules <= len(g.few) {
		g.readings = g.few[:rules]
	} else {
		g.readings = make([]reading, rules)
	}
	return g
}

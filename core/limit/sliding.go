package limit

import (
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/limit/internal/kind"
)

// SlidingWindow admits Limit permits in a Window that slides, as far as two counters can
// tell. The previous window counts in proportion to how much of it the sliding window
// still covers, as if its permits had been spread evenly. If they were not, close to
// twice the Limit can be admitted within one Window. It stores one key for each subject.
//
// Limit and Window are required. Window is a whole number of milliseconds.
type SlidingWindow struct {
	Name   string
	Limit  int64
	Window time.Duration
	Unit   string
}

// PolicyName returns Name, or a name made of the numbers if it is empty.
func (p SlidingWindow) PolicyName() string { return nameOr(p.Name, p.signature()) }

func (p SlidingWindow) quotaUnit() string { return p.Unit }

func (p SlidingWindow) signature() string {
	return fmt.Sprintf("sliding-%d-%s", p.Limit, keyspace.Span(p.Window))
}

func (p SlidingWindow) form() (name, form string) {
	return p.Name, "sliding-" + keyspace.Span(p.Window)
}

func (p SlidingWindow) compile(keeps bool) (*kind.Rule, error) {
	by, err := kind.NewSliding(p.Limit, p.Window, keeps)
	return ruleOf(p, keeps, by, err)
}

func (p SlidingWindow) prepay(Prepaid) (Policy, error) { return p, nil }

package limit

import (
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/limit/internal/kind"
)

// SlidingLog never admits more than Limit permits in any Window. It stores the time of
// every permit, some 10 bytes each in Redis.
//
// Limit and Window are required. Limit is at most 100,000. Window is at least a
// millisecond and a whole number of microseconds.
type SlidingLog struct {
	Name   string
	Limit  int64
	Window time.Duration
	Unit   string
}

// PolicyName returns Name, or a name made of the numbers if it is empty.
func (p SlidingLog) PolicyName() string { return nameOr(p.Name, p.signature()) }

func (p SlidingLog) quotaUnit() string { return p.Unit }

func (p SlidingLog) signature() string {
	return fmt.Sprintf("log-%d-%s", p.Limit, keyspace.Span(p.Window))
}

func (p SlidingLog) form() (name, form string) { return p.Name, "log-" + keyspace.Span(p.Window) }

func (p SlidingLog) compile(keeps bool) (*kind.Rule, error) {
	by, err := kind.NewLog(p.Limit, p.Window)
	return ruleOf(p, keeps, by, err)
}

func (SlidingLog) prepay(Prepaid) (Policy, error) {
	return nil, errors.New("a SlidingLog cannot be Prepaid, since it counts in every window: use a SlidingWindow")
}

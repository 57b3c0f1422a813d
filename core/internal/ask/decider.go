package ask

import (
	"context"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/reply"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// Decider runs the scripts of a limit within its budget, on a store that it shares with
// other primitives.
type Decider struct {
	Runner

	// Keeper renews leases. It has another budget than decisions, and therefore a queue of
	// its own: renewals can wait, and must not make decisions wait.
	Keeper Runner
	Store  *store.Store
}

// NewDecider makes a Decider for calls with that budget.
func NewDecider(st *store.Store, budget time.Duration) *Decider {
	in, _ := inside.Of(st)
	return &Decider{Runner{in, budget}, Runner{in, max(budget+time.Millisecond, script.DefaultBudget)}, st}
}

// Renew renews leases of one key that a script keeps, and reports which are there.
func (d *Decider) Renew(s *script.Script, key string, args []any, many int) (there []bool, err error) {
	told, err := d.Keeper.Run(context.Background(), s.Replies(nil, reply.List(many, reply.OneOf(0, 1))), []string{key}, args...)
	if err != nil {
		return nil, err
	}
	numbers, _ := reply.Numbers(told)
	for _, one := range numbers {
		there = append(there, one == 1)
	}
	return there, nil
}

// IsOpen reports whether the breaker holds calls back.
func (d *Decider) IsOpen() bool { return d.Inside.IsOpen(d.Budget) }

// CheckFail returns what is wrong with a failure mode, or nil.
func CheckFail(m store.FailMode) error {
	if m <= store.FailClosed {
		return nil
	}
	return fmt.Errorf("Fail is %d: use FailLocal, FailOpen or FailClosed", uint8(m))
}

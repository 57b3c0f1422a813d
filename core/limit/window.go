package limit

import (
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/limit/internal/kind"
)

// FixedWindow admits Limit permits in each Window. A window begins with its first
// admitted request. Across the end of a window, up to twice the Limit can be admitted
// within one Window. It is the cheapest policy, and stores one key for each subject.
//
// Limit and Window are required. Window is a whole number of milliseconds. A zero MaxDebt
// means no debt.
type FixedWindow struct {
	Name    string
	Limit   int64
	Window  time.Duration
	MaxDebt int64 // how far settled costs may exceed the Limit: see Decision.Settle
	Unit    string
}

// PolicyName returns Name, or a name made of the numbers if it is empty.
func (p FixedWindow) PolicyName() string { return nameOr(p.Name, p.signature()) }

func (p FixedWindow) quotaUnit() string { return p.Unit }

func (p FixedWindow) signature() string {
	return fmt.Sprintf("window-%d-%s", p.Limit, keyspace.Span(p.Window)) + debt(p.MaxDebt)
}

func (p FixedWindow) form() (name, form string) { return p.Name, "window-" + keyspace.Span(p.Window) }

func (p FixedWindow) compile(keeps bool) (*kind.Rule, error) {
	by, err := kind.NewWindow(p.Limit, p.Window, p.MaxDebt)
	return ruleOf(p, keeps, by, err)
}

func (p FixedWindow) prepay(Prepaid) (Policy, error) { return p, noDebt(p.MaxDebt) }

package limit

import (
	"time"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// asker runs the scripts of a limit within its budget, on a store that it shares with
// other primitives.
type asker struct {
	*script.Runner

	store  *store.Store
	budget time.Duration
	clocks *serverClocks
}

func newAsker(st *store.Store, budget time.Duration) (*asker, error) {
	runner, err := script.NewRunner(st, &script.Options{Budget: budget})
	if err != nil {
		return nil, err
	}
	return &asker{Runner: runner, store: st, budget: budget, clocks: new(serverClocks)}, nil
}

// keeper returns what renews leases. It has another budget than decisions, and therefore a
// queue of its own: renewals can wait, and must not make decisions wait.
func (a *asker) keeper() (*script.Runner, error) {
	return script.NewRunner(a.store, &script.Options{Budget: max(a.budget+time.Millisecond, script.DefaultBudget)})
}

// open reports whether the breaker holds calls back.
func (a *asker) open() bool { return a.store.BreakerOpen(a.budget) }

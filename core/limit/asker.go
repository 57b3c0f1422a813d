package limit

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/reply"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// asker runs the scripts of a limit within its budget, on a store that it shares with
// other primitives.
type asker struct {
	*script.Runner

	// keeper renews leases. It has another budget than decisions, and therefore a queue of
	// its own: renewals can wait, and must not make decisions wait.
	keeper *script.Runner
	store  *store.Store
	budget time.Duration
	clocks *serverClocks
}

func newAsker(st *store.Store, budget time.Duration) (*asker, error) {
	runner, err := script.NewRunner(st, &script.Options{Budget: budget})
	if err != nil {
		return nil, err
	}
	keeper, err := script.NewRunner(st, &script.Options{Budget: max(budget+time.Millisecond, script.DefaultBudget)})
	if err != nil {
		return nil, err
	}
	return &asker{Runner: runner, keeper: keeper, store: st, budget: budget, clocks: new(serverClocks)}, nil
}

// renewTogether renews leases of one key that a script keeps, and reports which are there.
func (a *asker) renewTogether(s *script.Script, key string, args []any, many int) (there []bool, err error) {
	told, err := a.keeper.Run(context.Background(), s.Replies(nil, reply.List(many, reply.OneOf(0, 1))), []string{key}, args...)
	if err != nil {
		return nil, err
	}
	numbers, _ := reply.Numbers(told)
	for _, one := range numbers {
		there = append(there, one == 1)
	}
	return there, nil
}

// open reports whether the breaker holds calls back.
func (a *asker) open() bool { return a.store.BreakerOpen(a.budget) }

package limit

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/reply"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// asker runs the scripts of a limit within its budget, on a store that it shares with
// other primitives.
type asker struct {
	ask.Runner

	// keeper renews leases. It has another budget than decisions, and therefore a queue of
	// its own: renewals can wait, and must not make decisions wait.
	keeper ask.Runner
	store  *store.Store
	clocks *serverClocks
}

func newAsker(st *store.Store, budget time.Duration) *asker {
	in, _ := inside.Of(st)
	return &asker{
		Runner: ask.Runner{Inside: in, Budget: budget},
		keeper: ask.Runner{Inside: in, Budget: max(budget+time.Millisecond, script.DefaultBudget)},
		store:  st, clocks: new(serverClocks),
	}
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
func (a *asker) open() bool { return a.Inside.IsOpen(a.Budget) }

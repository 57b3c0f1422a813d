package limit

import (
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/store"
)

// asker runs the scripts of a limiter, and of all limiters that With made from it.
type asker struct {
	*ask.Decider

	clocks *serverClocks
}

func newAsker(st *store.Store, budget time.Duration) *asker {
	return &asker{ask.NewDecider(st, budget), new(serverClocks)}
}

package labelstest

import (
	"testing"

	"github.com/neap-go/neap/core/store"
)

// NoAllocations checks that the observers of a store need no memory for an event like one before. It must not run in
// parallel: it counts what the process allocates.
func NoAllocations(t *testing.T, st *store.Store) {
	t.Helper()
	for _, e := range []store.Event{
		{Primitive: store.Limit, Name: "n", Policy: "p", Outcome: store.Denied},
		{Primitive: store.Lock, Name: "n", Outcome: store.Lost, Change: true},
	} {
		st.Notify(t.Context(), e)
		if n := testing.AllocsPerRun(100, func() { st.Notify(t.Context(), e) }); n > 0 {
			t.Errorf("%+v: got %v allocations, want none", e, n)
		}
	}
}

package idempotency_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/neap-go/neap/internal/redistest"
)

const (
	byOwner = " by its owner"
	another = " of another"
)

// cells are the fields of the table that can occur: a record that is not there has no
// owner.
var cells = func() (all []string) {
	for _, where := range []string{
		"none", "pending", "pending lapsed", "asking", "asking lapsed", "free", "done", "gone", "doubt",
	} {
		for _, what := range []string{
			"begin retry", "begin reject", "begin reconcile", "renew", "complete done", "complete gone",
			"abandon free", "abandon doubt", "abandon undo", "resolve free", "resolve done", "resolve gone",
		} {
			all = append(all, where+": "+what)
			if where == "none" {
				continue
			}
			all = append(all, where+": "+what+byOwner)
			if strings.HasPrefix(what, "begin") {
				all = append(all, where+": "+what+another)
			}
		}
		all = append(all, where+": forget", where+": inspect")
	}
	return all
}()

// TestRecordEqualsModel lets guards of each policy, and calls that come late, work on a
// record and on its model, while the clock is moved. Replies, state, attempt, fence,
// lease and retention are the same. A call that is repeated changes nothing.
func TestRecordEqualsModel(t *testing.T) { //nolint:tparallel // what occurred is counted when all have ended
	t.Parallel()
	var met redistest.Coverage
	t.Run("on", func(t *testing.T) {
		for name, c := range map[string]struct {
			place func(*testing.T) *place
			calls int // the number of calls that were compared with the model
		}{
			"miniredis 1": {onMiniredis, 200_000}, "miniredis 2": {onMiniredis, 200_000}, "standalone": {onServer, 40_000},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				calls, seen := stories(t, c.place(t), redistest.Steps(c.calls))
				met.Add(seen)
				met.Add(map[string]int{"calls": calls})
			})
		}
	})
	met.Want(t, redistest.Steps(440_000), "calls")
	met.Want(t, met.Times("calls")/8000, cells...) // all cells must occur in so many calls
	missed := slices.DeleteFunc(slices.Clone(cells), func(cell string) bool { return met.Times(cell) > 0 })
	if len(missed) > len(cells)/4 && !t.Failed() {
		t.Errorf("of %d cells, %d did not occur, want at most %d: %q", len(cells), len(missed), len(cells)/4, missed)
	}
}

func stories(t *testing.T, p *place, want int) (calls int, seen map[string]int) {
	t.Helper()
	const steps = 10
	rng := redistest.Rand(t)
	prefix, seen := redistest.Prefix(t), map[string]int{}
	for _, s := range scripts {
		if err := p.rdb.ScriptLoad(t.Context(), s.Source()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; calls < want; i++ {
		h := newStory(t, p, rng, prefix, fmt.Sprint("key", i), seen)
		h.scene(t)
		for range steps {
			h.step(t)
		}
		for i, g := range h.guards {
			if got := g.Stats(); got != h.stats[i] {
				t.Fatalf("%s: got the stats\n%+v\nwant\n%+v", policyNames[i], got, h.stats[i])
			}
		}
		calls += h.calls
		p.rdb.Del(t.Context(), h.key)
	}
	return calls, seen
}

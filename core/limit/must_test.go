package limit

import (
	"testing"
	"time"

	"github.com/neap-go/neap/core/store"
)

// must returns what a call returned, and ends the test if the call failed: l :=
// must(New(…))(t).
func must[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

// closed returns options with which Redis alone decides, within the budget.
// patience is the budget of a test that is not about budgets.
const patience = time.Minute

func closed(budget time.Duration) *Options { return &Options{Budget: budget, Fail: store.FailClosed} }

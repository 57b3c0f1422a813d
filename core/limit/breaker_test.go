package limit

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestThePageTellsWhenTheBreakerOpens holds docs/operations.md to the code.
func TestThePageTellsWhenTheBreakerOpens(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("after %d failures in a row, or when of %d calls or more %g %% failed, within %v and not before %v "+
		"(%d and %d budgets of %v). Nothing is sent then, but every %v one request asks",
		tripInARow, tripOf, tripRatio*100, tripBudgets*DefaultBudget, hiccup*DefaultBudget,
		tripBudgets, hiccup, DefaultBudget, openFor)
	if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), want) {
		t.Errorf("docs/operations.md does not say: %s", want)
	}
}

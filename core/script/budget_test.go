package script

import (
	"testing"
	"time"
)

// TestABudgetBeginsWhenTheCallerAsked, if it says when.
func TestABudgetBeginsWhenTheCallerAsked(t *testing.T) {
	t.Parallel()
	asked := time.Now().Add(-time.Hour)
	var b budget
	b.begin(t.Context(), asked, time.Minute)
	if got, _ := b.Deadline(); !got.Equal(asked.Add(time.Minute)) {
		t.Errorf("got the deadline %v, want a minute after %v", got, asked)
	}
	b.begin(t.Context(), time.Time{}, time.Minute)
	if got, _ := b.Deadline(); time.Until(got) <= 0 {
		t.Errorf("got the deadline %v, want one to come", got)
	}
}

package labelstest

import (
	"testing"

	"github.com/neap-go/neap/internal/labels"
)

// Compare fails the test unless what was counted is what was played.
func Compare(t *testing.T, got, want map[string]int) {
	t.Helper()
	for of, n := range want {
		if got[of] != n {
			t.Errorf("%s: got %d, want %d", of, got[of], n)
		}
	}
	for of, n := range got {
		if _, is := want[of]; !is {
			t.Errorf("%s: got %d, want none", of, n)
		}
	}
}

// Spell is the labels as text: those of equal text are counted together.
func Spell(counts map[labels.Labels]int, spell func(labels.Labels) string) map[string]int {
	all := map[string]int{}
	for l, n := range counts {
		all[spell(l)] += n
	}
	return all
}

package redistest

import (
	"strings"
	"testing"
)

// TestMetCountsOverAllGenerators: what one has not met is no fault when another
// has.
func TestMetCountsOverAllGenerators(t *testing.T) {
	t.Parallel()
	var met Coverage
	met.Add(map[string]int{"a lapse": 2})
	met.Add(map[string]int{"a denial": 1, "a lapse": 1})
	if n := met.Times("a lapse"); n != 3 {
		t.Errorf("Times says %d, want the 3 lapses that two generators met", n)
	}
	if msg := fatal(t, func(tb testing.TB) { met.Want(tb, 1, "a lapse", "a denial") }); msg != "" {
		t.Errorf("all was met, and Want says %s", msg)
	}
	msg := fatal(t, func(tb testing.TB) { met.Want(tb, 2, "a lapse", "a denial", "a loss") })
	if strings.Contains(msg, "lapse\"") || !strings.Contains(msg, `"a denial" was met 1 times, want 2`) || !strings.Contains(msg, `"a loss" was met 0 times`) {
		t.Errorf("a denial was met once and a loss never, and Want says %s", msg)
	}
}

package redistest

import (
	"maps"
	"slices"
	"sync"
	"testing"
)

// Coverage counts what generated tests have met. Subtests add to one Coverage, and the test
// looks when all of them have ended: what one seed does not meet, another may.
// The zero value is empty, and goroutines may share it.
type Coverage struct {
	mu    sync.Mutex
	times map[string]int
}

// Add adds the counts of one generator.
func (m *Coverage) Add(seen map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.times == nil {
		m.times = map[string]int{}
	}
	for what, n := range seen {
		m.times[what] += n
	}
}

// Times says how often something was met.
func (m *Coverage) Times(what string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.times[what]
}

// Want fails the test for each thing that was met less than least times, unless
// the test has failed already.
func (m *Coverage) Want(tb testing.TB, least int, what ...string) {
	tb.Helper()
	if tb.Failed() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range what {
		if n := m.times[w]; n < least {
			tb.Errorf("%q was met %d times, want %d", w, n, least)
		}
	}
	if tb.Failed() {
		tb.Logf("met were %v", slices.Sorted(maps.Keys(m.times)))
	}
}

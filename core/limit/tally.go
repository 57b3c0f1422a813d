package limit

import "sync"

// tally counts the slots that this process holds, by subject. The zero tally
// is ready to use.
type tally struct {
	mu  sync.Mutex
	all int
	n   map[string]int64
}

func (t *tally) add(subject string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.increment(subject)
}

// addBelow adds one unless as many as the limit are there, and tells how many
// then are.
func (t *tally) addBelow(subject string, limit int64) (n int64, added bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n[subject] >= limit {
		return t.n[subject], false
	}
	t.increment(subject)
	return t.n[subject], true
}

func (t *tally) increment(subject string) {
	if t.n == nil {
		t.n = make(map[string]int64)
	}
	t.n[subject]++
	t.all++
}

func (t *tally) remove(subject string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all--
	if t.n[subject]--; t.n[subject] == 0 {
		delete(t.n, subject)
	}
}

func (t *tally) of(subject string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n[subject]
}

func (t *tally) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all
}

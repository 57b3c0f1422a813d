package prepaid

import (
	"maps"
	"slices"
	"sync"
)

// outstanding is a set of what has to end before the process does: charges that are on
// their way, or permits that are not given back. Unlike the accounts, it forgets none.
type outstanding[T comparable] struct {
	mu  sync.Mutex
	set map[T]struct{}
}

func (o *outstanding[T]) add(one T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.set == nil {
		o.set = map[T]struct{}{}
	}
	o.set[one] = struct{}{}
}

func (o *outstanding[T]) remove(one T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.set, one)
}

func (o *outstanding[T]) all() []T {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.set))
}

package store

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// These are what tests of the package's behaviour need to know.
const (
	TripInARow   = tripInARow
	TripRatio    = tripRatio
	TripOf       = tripOf
	TripBudgets  = tripBudgets
	LeastBudgets = leastBudgets
	OpenFor      = openFor
	Forgotten    = forgotten
)

// Follow makes the store use of to find the server of a key.
func (s *Store) Follow(of func(ctx context.Context, key string) (*redis.Client, error)) {
	s.FollowOnceKnown(of)
	s.nodes.known.Store(true)
}

// FollowOnceKnown is Follow for a client that knows its servers only after its first
// answer, as the client of a cluster does.
func (s *Store) FollowOnceKnown(of func(ctx context.Context, key string) (*redis.Client, error)) {
	s.nodes.of = of
}

// IsKnown reports whether the registry has an entry of a client's weak pointer.
func IsKnown(key any) bool {
	stores.Lock()
	defer stores.Unlock()
	_, known := stores.of[key]
	return known
}

// Reloader returns a reloader that calls read. failed tells it how many calls had no
// answer since then.
func Reloader(read func(ctx context.Context) error) (failed func(since time.Time, calls int)) {
	c := clock{time.Now()}
	r := &reloader{read: read}
	return func(since time.Time, calls int) { r.failed(c.now(), int64(since.Sub(c.began))+1, calls) }
}

// BreakerOpen reports whether calls with that budget are held back.
func (s *Store) BreakerOpen(budget time.Duration) bool { return s.nodes.open(budget) }

// Nodes returns how many nodes are stored.
func (s *Store) Nodes() int {
	s.nodes.mu.RLock()
	defer s.nodes.mu.RUnlock()
	return len(s.nodes.all)
}

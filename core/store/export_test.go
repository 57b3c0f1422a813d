package store

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// What the tests of other packages' behaviour need to know.
const (
	TripInARow   = tripInARow
	TripRatio    = tripRatio
	TripOf       = tripOf
	TripBudgets  = tripBudgets
	LeastBudgets = leastBudgets
	OpenFor      = openFor
	Forgotten    = forgotten
)

// Follow makes the store take what of returns for the server of a key.
func (s *Store) Follow(of func(ctx context.Context, key string) (*redis.Client, error)) {
	s.FollowOnceKnown(of)
	s.nodes.known.Store(true)
}

// FollowOnceKnown is Follow for a client that knows its servers from its first answer
// on, as the client of a cluster does.
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

// Reloader is a reloader that reads by a function; failed tells it of a call without an
// answer since the first of them.
func Reloader(read func(ctx context.Context) error) (failed func(since time.Time, calls int)) {
	c := clock{time.Now()}
	r := &reloader{read: read}
	return func(since time.Time, calls int) { r.failed(c.now(), int64(since.Sub(c.began))+1, calls) }
}

// Nodes is how many nodes are kept.
func (s *Store) Nodes() int {
	s.nodes.mu.RLock()
	defer s.nodes.mu.RUnlock()
	return len(s.nodes.all)
}

package store

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// What the tests of other packages' behaviour need to know.
const (
	TripInARow  = tripInARow
	TripRatio   = tripRatio
	TripOf      = tripOf
	TripBudgets = tripBudgets
	Hiccup      = hiccup
	OpenFor     = openFor
	Forgotten   = forgotten
)

// Follow has the store take what of says for the server of a key.
func (s *Store) Follow(of func(ctx context.Context, key string) (*redis.Client, error)) {
	s.nodes.of = of
	s.nodes.known.Store(true)
}

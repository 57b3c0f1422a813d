package stock

import "context"

// Room sets how many reservations in doubt a Stock looks for at a time.
func (s *Stock) Room(n int) { s.undo.Room = n }

// Sweep lets tests make a sweep.
func (s *Stock) Sweep(ctx context.Context, key string) error {
	var w sweeping
	return w.sweep(ctx, s, key)
}

package stock

import "context"

// Room has so many reservations in doubt be looked for at a time.
func (s *Stock) Room(n int) { s.undo.Room = n }

// Sweep sweeps, for tests.
func (s *Stock) Sweep(ctx context.Context, key string) error {
	var w sweeping
	return w.sweep(ctx, s, key)
}

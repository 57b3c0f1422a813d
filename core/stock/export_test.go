package stock

import "context"

// Sweep sweeps, for tests.
func (s *Stock) Sweep(ctx context.Context, key string) error {
	var w sweeping
	return w.sweep(ctx, s, key)
}

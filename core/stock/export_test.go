package stock

import "context"

// Sweep is sweep, for tests.
func (s *Stock) Sweep(ctx context.Context, key string) error { return s.sweep(ctx, key) }

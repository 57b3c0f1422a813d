package inside

// Limiter is what a gate must know of a limit.Limiter.
type Limiter struct {
	HasLease  bool  // a policy is WithLease, so every decision that was granted must be settled
	IsPrepaid bool  // it has Options.Prepaid
	Unsettled error // why its decisions cannot be settled, or nil
}

// OfLimiter returns that of a *limit.Limiter. Package limit sets it, because gate is the only
// one that asks.
var OfLimiter func(limiter any) Limiter

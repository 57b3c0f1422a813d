package inside

// Limiter is what packages gate and outgoing must know of a limit.Limiter.
type Limiter struct {
	HasLease  bool  // a policy is WithLease, so every decision that was granted must be settled
	IsPrepaid bool  // it has Options.Prepaid
	Holds     bool  // it has Options.Holds
	IsShadow  bool  // its policies are shadows, so its holds are, too
	Unsettled error // why its decisions cannot be settled, or nil
}

// OfLimiter returns that of a *limit.Limiter. Package limit sets it.
var OfLimiter func(limiter any) Limiter

package limit

// KeepOnChange returns a policy that keeps its state when its Limit, Rate, Per, Burst or
// MaxDebt changes. For example, if 10 a day become 20, a subject has 20 that day, not 10
// and then 20. If 20 become 10, a subject that has used 15 is denied until the day ends.
//
// The policy needs a Name. The key has the name, the kind of policy, its Window, and the
// Every and Location of a calendar. If one of these changes, a fresh state begins. A
// fresh state also begins when you put an existing policy into KeepOnChange. The
// KeepOnChange of a KeepOnChange is the same policy.
//
// Processes with different numbers share the state, also while you deploy a change, and
// so do limiters that [Limiter.With] makes. Each decides by its own numbers. Together
// they admit no more than the largest numbers allow; if one has the larger Burst and
// another the larger Rate, that is the larger Burst with the larger Rate. If others have
// used more than a process's own Limit, that process reports 0 remaining.
//
// The debt of a TokenBucket drains at the Rate of the policy that charged it last. So a
// larger Rate takes effect with the first request that is granted, and RetryAfter says
// when that can be. If a policy with other numbers has charged the bucket since, a
// Refund, or a Settle to less, gives nothing back. The bucket counts in millionths of a
// permit, by microseconds. Multiply its largest debt in permits by 10^6, and by the
// microseconds in which a whole number of millionths drains: the product is at most 2^51.
// For example, 10 a day can have a Burst of at most 260,000.
//
// A SlidingWindow must have a Limit below 2^26. KeepOnChange cannot be [Prepaid]. A
// denial that is remembered (Options.RememberDenials) can outlast a larger Rate of
// another process, until the time of the denial is over.
//
// Each decision of a TokenBucket of up to a permit a millisecond costs Redis half as much
// again; each decision of the other policies costs the same.
func KeepOnChange(p Policy) Policy { return with(p, func(t *terms) { t.kept = true }) }

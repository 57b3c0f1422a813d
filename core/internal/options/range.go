package options

import "time"

// These are the range of a lease, and the shortest RetryDelay.
const (
	MinLease      = 50 * time.Millisecond
	MaxLease      = 24 * time.Hour
	MinRetryDelay = 5 * time.Millisecond
)

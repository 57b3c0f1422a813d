package limit

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/core/limit/internal/wire"
)

// These are the shortest and the longest lease of an estimate.
const (
	minLease = 10 * time.Millisecond
	maxLease = 24 * time.Hour
)

// WithLease returns a policy whose costs are estimates with a lease. p is a [FixedWindow]
// or a [CalendarWindow]. If an estimate is neither settled nor refunded, it is given back
// when its lease ends, so a crash does not use up a month's quota. Without a lease, such
// an estimate stays until the window ends. The lease is 10 ms to 24 h. If p has a lease
// already, this one replaces it.
//
// This process renews a lease three times in its length. It stops when [Decision.Settle]
// or [Decision.Refund] has succeeded or was given up, or when nothing refers to the Decision
// and its copies any more. A call that goes on in the background refers to it. So settle
// every decision that was granted, even if its cost was exactly the estimate. A lease then
// ends only after a crash, or if Redis cannot be asked for as long as the lease lasts.
//
// A request that finds no room in the window first takes back up to 100 estimates whose
// lease has ended, and is then decided. A [Limiter.Wait] does not foresee that. If an
// estimate was taken back, a later Settle charges all that was used, once.
//
// The policy counts in the same key as without a lease. A second key has some 100 bytes
// for each estimate that is not settled. A denial writes only what it takes back; if
// Redis refuses that write, the estimates stay. A decision that was made in process, by
// NewLocal or FailLocal, has no lease: its estimates end with the process, or with the
// window.
//
// [PerRequest] and [Prepaid] are refused, because they are not settled.
func WithLease(p Policy, lease time.Duration) Policy {
	return with(p, func(t *terms) { t.leased, t.lease = true, lease })
}

// checkLease returns why a policy cannot have its lease.
func checkLease(r *kind.Rule, t *terms) error {
	if !r.Estimates {
		return fmt.Errorf("WithLease does not suit policy %q: use a FixedWindow or a CalendarWindow; in the others, estimates that nobody settles are forgotten with time", r.Name)
	}
	if t.lease < minLease || t.lease > maxLease {
		return fmt.Errorf("the lease of policy %q is %v: use %v to %v", r.Name, t.lease, minLease, maxLease)
	}
	return nil
}

var errLeasedRequests = errors.New("a PerRequest is not settled, so it has no estimates: leave out PerRequest or WithLease")

// renew renews the estimates of a decision until it is spent or nothing refers to it. A conclusion
// in the background refers to it.
func (q *request) renew() {
	if q.kept = q.of.remote.Keep(&q.Request); q.kept != nil {
		runtime.AddCleanup(q, (*wire.Renewals).EndSoon, q.kept)
	}
}

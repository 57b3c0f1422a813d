package limit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"weak"

	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/internal/token"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

var renewEstimatesScript = script.FromFS(lua.FS, "limit_renew.lua").Essential().Batched()

// leased is a policy that gives back estimates whose process is gone.
type leased struct {
	Policy

	lease time.Duration
}

// WithLease makes a [FixedWindow] or a [CalendarWindow] whose costs are estimates on a lease: one that nobody settles
// or refunds is given back when its lease ends, so that a crash does not use up a month's quota. Without a lease such an
// estimate stays until the window ends. The lease is 10 ms to 24 h.
//
// This process renews the lease three times in its length, until [Decision.Settle], [Limiter.Refund], or until nothing refers to the
// Decision and its copies any more. So settle every decision that was granted, also to its own cost. A lease thus ends after a crash, or
// if Redis cannot be asked for as long as it lasts. A request that finds no room in the window takes back up to 100 such estimates and
// is decided then; a [Limiter.Wait] does not foresee that. Settle of an estimate that was taken back charges all that
// was used, once.
//
// The policy counts in the same key as without a lease. A second key has some 100 bytes for each estimate that is
// not settled. A denial writes what it takes back; if Redis refuses that, the estimates stay. A decision that was
// made in process, by NewLocal or FailLocal, has no lease: its estimates end with the process, or with the window.
// [PerRequest] and [Prepaid] are refused, since they are not settled. If the policy has a lease already, this one replaces it.
func WithLease(p Policy, lease time.Duration) Policy {
	if isNil(p) {
		return p
	}
	switch of := p.(type) {
	case shadowed:
		return Shadow(WithLease(of.Policy, lease))
	case banning:
		return banning{WithLease(of.Policy, lease), of.ban}
	case leased:
		return leased{of.Policy, lease}
	}
	return leased{p, lease}
}

func (p leased) compile() (rule, error) {
	r, err := p.Policy.compile()
	if err != nil {
		return nil, err
	}
	switch r.(type) {
	case *window, *calendar:
	default:
		return nil, fmt.Errorf("WithLease does not suit policy %q: use a FixedWindow or a CalendarWindow; the others forget by and by what nobody settles", r.id().name)
	}
	if r.id().once {
		return nil, errLeasedRequests
	}
	if p.lease < minLease || p.lease > maxLease {
		return nil, fmt.Errorf("the lease of policy %q is %v: use %v to %v", r.id().name, p.lease, minLease, maxLease)
	}
	r.id().lease = p.lease.Truncate(time.Millisecond)
	return r, nil
}

var errLeasedRequests = errors.New("a PerRequest is not settled, so it has no estimates: leave out PerRequest or WithLease")

func hasLease(r rule) bool { return r.id().lease > 0 }

// HasLease reports whether a policy of the limiter is [WithLease], so that each decision that was granted is to be settled. It sends
// nothing, is safe for concurrent use, and panics on a nil or zero Limiter.
func (l *Limiter) HasLease() bool {
	misuse.Made(l.made(), errLimiter)
	return slices.ContainsFunc(l.rules, hasLease)
}

// estimatesOf is the key of a subject's estimates.
func (r *remote) estimatesOf(of rule, subject string) string {
	return r.space.Key(subject, of.id().tail+"!estimates")
}

// estimate names what a decision has taken, among the estimates.
func (g *grant) estimate() string { return fmt.Sprintf("%s:%d", g.token, g.cost) }

// keep renews the estimates that a decision has taken, until it is settled or nothing refers to it.
func (r *remote) keep(l *Limiter, g *grant) {
	var keys []string
	var args []any
	shortest := maxLease
	for i, rule := range l.rules {
		if id := rule.id(); hasLease(rule) && g.cost > 0 && !g.peek && !g.denied && !g.readings[i].refused() {
			keys = append(keys, r.estimatesOf(rule, g.subject))
			args = append(args, integer(id.lease.Milliseconds()), g.estimate())
			shortest = min(shortest, id.lease)
		}
	}
	if len(keys) > 0 {
		own := weak.Make(g)
		renewal{r, keys, args, shortest, func() bool { g := own.Value(); return g != nil && !g.spent.Load() }}.after(lease.Pause(shortest, true))
	}
}

// renewal renews estimates for as long as they are to be kept.
type renewal struct {
	at    *remote
	keys  []string
	args  []any
	lease time.Duration
	held  func() bool
}

func (n renewal) after(pause time.Duration) {
	time.AfterFunc(pause, func() {
		if !n.held() {
			return
		}
		_, err := n.at.Run(context.Background(), renewEstimatesScript, n.keys, n.args...)
		n.after(lease.Pause(n.lease, err == nil))
	})
}

// newToken names the estimates of a decision, if its policies have leases.
func (l *Limiter) newToken() string {
	if l.remote == nil || !l.remote.leased {
		return ""
	}
	return token.New()
}

package limit

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/token"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

var renewEstimatesScript = script.FromFS(lua.FS, "limit_renew.lua").Essential().Batched()

// leased is a policy that gives back estimates of processes that have died.
type leased struct {
	Policy

	lease time.Duration
}

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
		return nil, fmt.Errorf("WithLease does not suit policy %q: use a FixedWindow or a CalendarWindow; in the others, estimates that nobody settles are forgotten with time", r.id().name)
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

// estimatesOf returns the key of a subject's estimates.
func (r *remote) estimatesOf(of rule, subject string) string {
	return r.space.Key(subject, of.id().tail+"!estimates")
}

// estimate returns the name under which a decision's cost is stored among the estimates.
func (g *grant) estimate() string { return estimateName(g.token, g.cost) }

func estimateName(token string, cost int64) string { return fmt.Sprintf("%s:%d", token, cost) }

// estimate is a decision's cost under one policy, as the wheel of leases has it. It does not
// keep the decision alive. It has no weak pointer to it: a pointer that is made of one while
// garbage is collected keeps the decision until the next time.
type estimate struct {
	lease.Member

	of   *renewals
	name string
}

// renewals are those of the estimates of one decision.
type renewals struct {
	wheel *lease.Wheel
	all   []*estimate
	over  atomic.Bool // none is needed any more
}

// end takes the estimates out of the wheel. Only the first call does anything.
func (r *renewals) end(remove func(*lease.Wheel, *lease.Member)) {
	if r.over.Swap(true) {
		return
	}
	for _, e := range r.all {
		remove(r.wheel, &e.Member)
	}
}

// keep renews the estimates of a decision until it is spent or nothing refers to it. A
// conclusion in the background refers to it.
func (r *remote) keep(l *Limiter, g *grant) {
	kept := &renewals{wheel: r.Inside.Leases()}
	for i, rule := range l.rules {
		if length := rule.id().lease; hasLease(rule) && g.cost > 0 && !g.peek && !g.denied && !g.readings[i].refused() {
			e := &estimate{of: kept, name: g.estimate()}
			e.Of = e
			kept.all = append(kept.all, e)
			by := estimates{r, integer(length.Milliseconds())}
			now := time.Now()
			kept.wheel.Add(&e.Member, by, r.estimatesOf(rule, g.subject), length, now.Add(lease.Pause(length, true)), now.Add(length))
		}
	}
	if len(kept.all) > 0 {
		g.kept = kept
		runtime.AddCleanup(g, func(kept *renewals) { kept.end((*lease.Wheel).RemoveSoon) }, kept)
	}
}

// estimates renews estimates with leases of one length.
type estimates struct {
	at     *remote
	length any
}

// Renew makes it a [lease.Renewer].
func (by estimates) Renew(key string, all []*lease.Member) {
	args := append(make([]any, 0, 1+len(all)), by.length)
	var asking []*estimate
	for _, m := range all {
		e := m.Of.(*estimate)
		if e.of.over.Load() {
			e.Result = lease.Over
			continue
		}
		args, asking = append(args, e.name), append(asking, e)
	}
	if len(asking) == 0 {
		return
	}
	there, err := by.at.Renew(renewEstimatesScript, key, args, len(asking))
	for i, e := range asking {
		switch {
		case err != nil:
		case there[i]:
			e.Result = lease.Renewed
		default: // it was taken back
			e.Result = lease.Over
		}
	}
}

// newToken returns a name for the estimates of a decision, or "" if no policy has a
// lease.
func (l *Limiter) newToken() string {
	if l.remote == nil || !l.remote.leased {
		return ""
	}
	return token.New()
}

package wire

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/limit/internal/kind"
)

// estimatesOf returns the key of a subject's estimates.
func (r *Remote) estimatesOf(of *kind.Rule, subject string) string {
	return r.Space.Key(subject, of.Tail+"!estimates")
}

// estimateName returns the name under which a cost is stored among the estimates.
func estimateName(token string, cost int64) string { return fmt.Sprintf("%s:%d", token, cost) }

// estimate is a decision's cost under one policy, as the wheel of leases has it. It does not
// keep the decision alive. It has no weak pointer to it: a pointer that is made of one while
// garbage is collected keeps the decision until the next time.
type estimate struct {
	lease.Member

	of   *Renewals
	name string
}

// Renewals are those of the estimates of one decision.
type Renewals struct {
	wheel *lease.Wheel
	all   []*estimate
	over  atomic.Bool // none is needed any more
}

// End ends them. On nil Renewals it does nothing.
func (r *Renewals) End() { r.end((*lease.Wheel).Remove) }

// EndSoon is End for a cleanup after garbage was collected, which must not wait.
func (r *Renewals) EndSoon() { r.end((*lease.Wheel).RemoveSoon) }

// Over reports whether they have ended.
func (r *Renewals) Over() bool { return r.over.Load() }

// end takes the estimates out of the wheel. Only the first call does anything.
func (r *Renewals) end(remove func(*lease.Wheel, *lease.Member)) {
	if r == nil || r.over.Swap(true) {
		return
	}
	for _, e := range r.all {
		remove(r.wheel, &e.Member)
	}
}

// Keep renews the estimates of a granted request until they are ended. It returns nil if there are
// none.
func (r *Remote) Keep(of *kind.Request) *Renewals {
	kept := &Renewals{wheel: r.Inside.Leases()}
	for i, rule := range r.set.Rules {
		if length := rule.Lease; length > 0 && of.Cost > 0 && !of.Readings[i].Refused() {
			e := &estimate{of: kept, name: estimateName(of.Token, of.Cost)}
			e.Of = e
			kept.all = append(kept.all, e)
			by := estimates{r, kind.Integer(length.Milliseconds())}
			now := time.Now()
			kept.wheel.Add(&e.Member, by, r.estimatesOf(rule, of.Subject), length, now.Add(lease.Pause(length, true)), now.Add(length))
		}
	}
	if len(kept.all) == 0 {
		return nil
	}
	return kept
}

// estimates renews estimates with leases of one length.
type estimates struct {
	at     *Remote
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
	there, err := by.at.Renew(RenewScript, key, args, len(asking))
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

package limit

import (
	"context"
	"errors"
	"fmt"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/script"
)

// Ask is one request to one limiter, for [All]. Limiter and Subject are required.
type Ask struct {
	Limiter *Limiter
	Subject string
	Cost    int64 // how many permits; 0 means 1
}

// Joint is the answer of [All] to several requests that are granted together or not at
// all.
type Joint struct {
	// Allowed reports whether all requests were granted. If not, no limiter stays
	// charged, except as Kept says.
	Allowed bool
	// Decisions are the decisions, in the order of the asks. If Allowed is false, a
	// decision that is Allowed was given back, and the decision of an ask that was not
	// sent is the zero Decision.
	Decisions []Decision
	// Binds is the index of the decision that binds. If Allowed is false, it is the
	// denial with the longest wait. Otherwise it is the decision that admits the fewest
	// further requests of this kind.
	Binds int
	// Kept says why permits that were granted beside a denial may still be taken: Redis
	// did not confirm their refund, which goes on in the background. It is nil if there
	// are none. Its text may name keys.
	Kept error
}

// Decision returns the decision that binds.
func (j *Joint) Decision() Decision {
	if j == nil || j.Binds >= len(j.Decisions) {
		return Decision{}
	}
	return j.Decisions[j.Binds]
}

// All asks several limiters, each for its own subject, and takes from all of them or from
// none: for example 1,000 a second for everybody, 100 for a plan, and 10 for a user. If
// all limits are for the same subject, use one limiter with several policies instead: it
// decides with one script.
//
// The limiters are asked at the same time, so a grant takes as long as one round trip. If
// one of them denies, All gives back what the others granted, with [Decision.Refund],
// before it returns. Until then the others may deny other requests because of it. A
// bucket does not get back what drains in that time and in 2 ms more. No limiter admits
// more than it does by itself.
//
// After a denial, All asks for that subject alone until its RetryAfter has passed, for a
// minute at most. So if one limiter denies a flood of requests, the flood takes nothing
// from the others, and each request costs one round trip.
//
// Each limiter decides by its own failure mode. The error joins the errors of TakeN, each
// with the index of its ask. If there is an error, what the other limiters granted was
// given back. An invalid ask is an error before anything is sent. All is safe for
// concurrent use.
func All(ctx context.Context, asks ...Ask) (Joint, error) {
	misuse.Context(ctx)
	if len(asks) == 0 {
		return Joint{}, errors.New("limit.All: asks is empty: give at least one Ask")
	}
	a := allAsks{asks: make([]Ask, len(asks)), errs: make([]error, len(asks))}
	a.decisions = make([]Decision, len(asks))
	alone := -1
	for i, ask := range asks {
		if ask.Cost == 0 {
			ask.Cost = 1
		}
		if err := ask.Limiter.check(ctx, ask.Subject, ask.Cost); err != nil {
			return Joint{}, fmt.Errorf("limit.All: asks[%d]: %w", i, err)
		}
		if a.asks[i] = ask; alone < 0 && ask.deniedBefore() {
			alone = i
		}
	}
	if alone < 0 || a.ask(ctx, alone) {
		a.askAll(ctx, alone)
	}
	return a.answer(ctx)
}

// deniedBefore reports whether the last denial of the subject still holds.
func (a *Ask) deniedBefore() bool {
	var d Decision
	return a.Limiter.deciding(a.Subject).recall(a.Limiter.denials(), &d, a.Subject, a.Cost)
}

// allAsks are the asks of one call of All, and their results.
type allAsks struct {
	asks      []Ask
	decisions []Decision
	errs      []error
}

// ask sends one ask, and reports whether it was granted.
func (a *allAsks) ask(ctx context.Context, i int) bool {
	of := &a.asks[i]
	a.errs[i] = errEnded
	at, epoch := of.Limiter.denials().Epoch(of.Subject)
	d, err := of.Limiter.TakeN(ctx, of.Subject, of.Cost)
	if q := d.request; err == nil && !d.Allowed && !d.Degraded && len(q.Readings) > 0 {
		of.Limiter.denials().Keep(q.of.set, &q.Request, at, epoch)
	}
	a.decisions[i], a.errs[i] = d, err
	return err == nil && d.Allowed
}

// askAll sends all asks except one, at the same time.
func (a *allAsks) askAll(ctx context.Context, but int) {
	var others []<-chan error
	mine := -1
	for i := range a.asks {
		switch {
		case i == but:
		case mine < 0:
			mine = i
		default:
			others = append(others, background.Start(func() error {
				a.ask(ctx, i)
				return nil
			}))
		}
	}
	if mine >= 0 {
		a.ask(ctx, mine)
	}
	for _, one := range others {
		<-one //nolint:errcheck // ask notes how each call ended
	}
}

func (a *allAsks) answer(ctx context.Context) (Joint, error) {
	j := Joint{Allowed: true, Decisions: a.decisions}
	var faults []error
	for i := range a.decisions {
		d := &a.decisions[i]
		if err := a.errs[i]; err != nil {
			faults = append(faults, fmt.Errorf("limit.All: asks[%d]: %w", i, err))
		}
		j.Allowed = j.Allowed && d.Allowed
		if bindsMore(d, &a.decisions[j.Binds]) {
			j.Binds = i
		}
	}
	if !j.Allowed {
		j.Kept = a.giveBack(ctx)
	}
	if err := errors.Join(faults...); err != nil {
		return Joint{}, errors.Join(err, j.Kept)
	}
	return j, nil
}

// bindsMore reports whether d binds more than another decision, which has another
// subject.
func bindsMore(d, than *Decision) bool {
	switch {
	case d.Policy == "": // d was not asked for, or has no enforced policy
		return false
	case than.Policy == "" || d.Allowed != than.Allowed:
		return than.Policy == "" || than.Allowed
	case !d.Allowed:
		return d.RetryAfter > than.RetryAfter
	case d.more != than.more:
		return d.more < than.more
	}
	return d.Remaining < than.Remaining
}

// giveBack gives back what was granted, even if the caller's context has ended.
func (a *allAsks) giveBack(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var refunds []<-chan error
	for i := range a.decisions {
		if a.decisions[i].Allowed {
			refunds = append(refunds, background.Start(func() error { return a.refund(ctx, i) }))
		}
	}
	var kept error
	for _, one := range refunds {
		err := <-one
		if errors.Is(err, background.ErrEnded) {
			err = errEnded
		}
		kept = errors.Join(kept, err)
	}
	return kept
}

func (a *allAsks) refund(ctx context.Context, i int) error {
	err := a.decisions[i].Refund(ctx)
	if err == nil || errors.Is(err, ErrRefund) {
		return nil
	}
	return fmt.Errorf("limit.All: asks[%d]: %w", i, err)
}

// errEnded is the error of an ask or a refund that did not return.
var errEnded error = &script.Error{
	Script: "limits/take.lua", Class: script.ErrMaybeExecuted,
	Err: background.ErrEnded,
}

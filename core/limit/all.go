package limit

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/neap-go/neap/core/internal/misuse"
)

// Ask is a request to one limiter, of those that [All] decides together.
type Ask struct {
	Limiter *Limiter
	Subject string
	Cost    int64 // how many permits; 0 means 1
}

// Joint is the answer to several requests that are granted together or not at all.
type Joint struct {
	// Allowed says whether all of them were granted. If not, none is charged, but for
	// what Kept tells.
	Allowed bool
	// Decisions are those of the asks, in their order. Beside a denial, one that is Allowed was
	// given back, and one that was not asked is the zero Decision.
	Decisions []Decision
	// Binds is the index of the decision that binds: of a denial the one that makes the caller wait
	// longest, otherwise the one that admits the fewest more of such requests.
	Binds int
	// Kept is why permits that were granted beside a denial may still be taken: they could not be
	// given back. It is nil if there are none. Its text may name keys.
	Kept error
}

// Decision is the one that binds.
func (j *Joint) Decision() Decision {
	if j == nil || j.Binds >= len(j.Decisions) {
		return Decision{}
	}
	return j.Decisions[j.Binds]
}

// All asks several limiters, each for a subject of its own, and takes from all or from none: 1,000 a
// second for everybody, 100 for a plan, 10 for a user. For several limits of one subject, a limiter of
// several policies is better: it decides by one script.
//
// The limiters are asked at the same time, so that a grant takes as long as one round trip. If one
// denies, what the others granted is given back by [Limiter.Refund] before All returns. Until then
// they may deny other requests for it. A bucket does not get back what drains in that time and in 2 ms
// more. No limiter admits more than it does by itself. A subject that was denied is asked for alone until
// its RetryAfter has passed, for a minute at most. So a flood of requests that one limiter denies takes
// nothing of the others, and each request costs one round trip.
//
// Each limiter decides by its own failure mode. The errors are those of TakeN, joined, each with the
// index of its ask. If there is one, what the other limiters granted was given back. An ask that is wrong
// is an error before anything is sent. All is safe for concurrent use.
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

// deniedBefore says whether the subject's last denial has not ended.
func (a *Ask) deniedBefore() bool {
	var d Decision
	return a.Limiter.denials().recall(&d, a.Limiter, a.Subject, a.Cost)
}

// allAsks are asks and what becomes of them.
type allAsks struct {
	asks      []Ask
	decisions []Decision
	errs      []error
}

// ask says whether it was granted.
func (a *allAsks) ask(ctx context.Context, i int) bool {
	of := &a.asks[i]
	at, epoch := of.Limiter.denials().epoch(of.Subject)
	d, err := of.Limiter.TakeN(ctx, of.Subject, of.Cost)
	if g := d.grant; err == nil && !d.Allowed && !d.Degraded && len(g.readings) > 0 {
		of.Limiter.denials().keep(of.Limiter, g, at, epoch)
	}
	a.decisions[i], a.errs[i] = d, err
	return err == nil && d.Allowed
}

// askAll asks all but one, at the same time.
func (a *allAsks) askAll(ctx context.Context, but int) {
	var others sync.WaitGroup
	mine := -1
	for i := range a.asks {
		switch {
		case i == but:
		case mine < 0:
			mine = i
		default:
			others.Go(func() { a.ask(ctx, i) })
		}
	}
	if mine >= 0 {
		a.ask(ctx, mine)
	}
	others.Wait()
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

// bindsMore says whether a decision binds more than another, of another subject.
func bindsMore(d, than *Decision) bool {
	switch {
	case d.Policy == "": // not asked, or no policy is enforced
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

// giveBack gives back what was granted, though the caller may have gone.
func (a *allAsks) giveBack(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	kept := make([]error, len(a.asks))
	var all sync.WaitGroup
	for i := range a.decisions {
		if a.decisions[i].Allowed {
			all.Go(func() {
				if err := a.asks[i].Limiter.Refund(ctx, a.decisions[i]); err != nil && !errors.Is(err, ErrRefund) {
					kept[i] = fmt.Errorf("limit.All: asks[%d]: %w", i, err)
				}
			})
		}
	}
	all.Wait()
	return errors.Join(kept...)
}

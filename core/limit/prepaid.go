package limit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/options"
	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/core/limit/internal/prepaid"
)

// Prepaid says how permits are charged ahead. A limiter then charges several permits of a
// subject at once and grants them in process, so a busy subject costs one round trip for
// many decisions. The zero Prepaid charges nothing ahead.
//
// No policy grants more than without Prepaid. Permits of a window end with that window. A
// bucket's Burst is made smaller by Rate·Term/Per, rounded up; at least 1 must remain.
// The smaller Burst is the Limit in decisions, and a cost above it is a [*CostError]. It
// is also part of the key, after the policy's name: bucket-100-1s!bucket-100-1s-90. So
// processes with another Term, or without Prepaid, count apart, and together admit the
// limit once each, also while you deploy such a change.
//
// One charge takes about as many permits as were granted in half a Term, and at most an
// eighth of what is left. So near the limit each request is charged by itself. If a
// process has no permits left, a decision takes up to two round trips of a Budget each:
// the first charges several permits, and if Redis denies that, the second asks for this
// request alone.
//
// A process may hold permits unused for up to one Term. If a process ends without
// [store.Store.Drain], or the reply to a charge is lost, permits stay taken until their window
// ends, or until they have refilled.
//
// A process still grants what it has charged, for up to one Term, after another process
// has reset the subject, after Redis has lost its keys or stepped its clock forward, and
// after its own machine was suspended.
//
// Charged permits count as taken: in figures, in Peek and for other processes. They are
// granted even while Redis does not answer. A [SlidingLog], a policy with a MaxDebt or a
// [Ban], a [KeepOnChange], a [WithLease], a [PerRequest] and a [Shadow] cannot be
// prepaid, nor can a limiter with Holds or Overrides.
type Prepaid struct {
	// Most is how many permits are charged at once at most: 2 to 1,000,000.
	Most int64
	// Term is how long permits are kept at most: a millisecond to a minute; 0 means
	// 100 ms. Permits that are left then are given back.
	Term time.Duration
}

const (
	mostPrepaid = 1_000_000
	defaultTerm = 100 * time.Millisecond
	maxTerm     = time.Minute
)

// withDefaults returns a checked copy with the default filled in.
func (p Prepaid) withDefaults() (Prepaid, error) {
	if p.Most == 0 && p.Term == 0 {
		return p, nil
	}
	var check options.Check
	if p.Most < 2 || p.Most > mostPrepaid {
		check.Faultf("Prepaid.Most is %d: use 2 to %d, or the zero Prepaid to charge nothing ahead", p.Most, mostPrepaid)
	}
	check.Duration("Prepaid.Term", &p.Term, time.Millisecond, maxTerm, defaultTerm)
	return p, check.Err()
}

// policies returns the policies as they are counted if permits are charged ahead.
func (p Prepaid) policies(all []Policy) ([]Policy, error) {
	if p.Most == 0 {
		return all, nil
	}
	var faults []error
	kept := make([]Policy, len(all))
	for i, one := range all {
		if kept[i] = one; isNil(one) {
			continue // compile reports it
		}
		changed, err := valueOf(one).prepay(p)
		if err != nil {
			faults = append(faults, fmt.Errorf("policies[%d] (%T): %w", i, bare(one), err))
			continue
		}
		kept[i] = changed
	}
	return kept, errors.Join(faults...)
}

func noDebt(most int64) error {
	if most <= 0 { // compile reports one below 0
		return nil
	}
	return errors.New("it cannot be Prepaid, since it has a MaxDebt and permits that were charged ahead are not settled: leave out one of them")
}

// prepay says why permits of a policy with such terms cannot be charged ahead.
func (p termed) prepay(Prepaid) (Policy, error) { return nil, p.terms.notPrepaid() }

func (t *terms) notPrepaid() error {
	switch {
	case t.shadow:
		return errors.New("a Shadow cannot be Prepaid, since it would count permits that were not requested: enforce the policy, or leave out Prepaid")
	case t.banned:
		return errors.New("a policy with a Ban cannot be Prepaid, since a process would grant to a banned subject what it had charged before: leave out the Ban, or Prepaid")
	case t.leased:
		return errors.New("a WithLease cannot be Prepaid, since permits that were charged ahead are not settled: leave out one of them")
	case t.perRequest:
		return errors.New("a PerRequest cannot be Prepaid, since it would count each charge as one request: leave out one of them")
	}
	return errors.New("a KeepOnChange cannot be Prepaid, since another process may have smaller numbers than permits were charged by: leave out one of them")
}

// charger charges permits ahead. It is a [prepaid.Charger].
type charger Limiter

// Charge charges permits of a subject, and returns how many are left.
func (by *charger) Charge(ctx context.Context, subject string, cost int64) (charged prepaid.Charge, left int64, err error) {
	l := (*Limiter)(by)
	q := newRequest(subject, cost, len(l.set.Rules))
	q.of, q.Asked = l, time.Now()
	err = l.take(ctx, q)
	q.Answered = time.Now()
	if err != nil {
		return nil, 0, err
	}
	var d Decision
	l.judge(&d, q.Readings, kind.Wants(cost))
	if d.Allowed {
		charged = (*charge)(q)
	}
	return charged, d.Remaining, nil
}

// charge is a request of permits that were charged ahead. It is a [prepaid.Charge].
type charge request

// Taken returns the request by which they were charged.
func (c *charge) Taken() *kind.Request { return &c.Request }

// GiveBack gives back those that are left.
func (c *charge) GiveBack(ctx context.Context, left int64) error {
	rest := newRequest(c.Subject, left, len(c.Readings))
	rest.of, rest.Asked, rest.Answered = c.of, c.Asked, c.Answered
	copy(rest.Readings, c.Readings)
	conclusion, err := rest.conclude(returns, 0)
	if err == nil {
		_, err = conclusion.finish(ctx)
	}
	if errors.Is(err, ErrRefund) { // they have come back by themselves
		err = nil
	}
	return err
}

// spend makes d the decision that permits were granted which had been charged ahead.
func (l *Limiter) spend(d *Decision, from *prepaid.Permits, index int64, told []kind.Reading, cost int64) {
	l.judge(d, told, kind.Wants(cost))
	d.request, d.permits, d.index, d.cost = (*request)(from.Charge.(*charge)), from, index, cost
}

func (l *Limiter) returnPrepaid(ctx context.Context) error { return l.accounts.Return(ctx) }

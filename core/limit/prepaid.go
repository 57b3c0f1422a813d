package limit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/neap-go/neap/core/internal/options"
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
// granted even while Redis does not answer. A [SlidingLog], a policy with a [Ban], a
// [KeepOnChange] and a [Shadow] cannot be prepaid.
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
		kept[i] = one
		if b, is := one.(*TokenBucket); is && b != nil {
			one = *b
		}
		if owed(one) > 0 {
			faults = append(faults, fmt.Errorf("policies[%d] (%T): it cannot be Prepaid, since it has a MaxDebt and permits that were charged ahead are not settled: leave out one of them", i, one))
			continue
		}
		switch one := one.(type) {
		case TokenBucket:
			var err error
			if kept[i], err = p.bucket(one); err != nil {
				faults = append(faults, fmt.Errorf("policies[%d] (%T): %w", i, one, err))
			}
		case FixedWindow, SlidingWindow, CalendarWindow, *FixedWindow, *SlidingWindow, *CalendarWindow:
		case SlidingLog, *SlidingLog:
			faults = append(faults, fmt.Errorf("policies[%d] (%T): a SlidingLog cannot be Prepaid, since it counts in every window: use a SlidingWindow", i, one))
		case shadowed:
			faults = append(faults, fmt.Errorf("policies[%d]: a Shadow cannot be Prepaid, since it would count permits that were not requested: enforce the policy, or leave out Prepaid", i))
		case banning:
			faults = append(faults, fmt.Errorf("policies[%d]: a policy with a Ban cannot be Prepaid, since a process would grant to a banned subject what it had charged before: leave out the Ban, or Prepaid", i))
		case leased:
			faults = append(faults, fmt.Errorf("policies[%d]: a WithLease cannot be Prepaid, since permits that were charged ahead are not settled: leave out one of them", i))
		case keptOnChange:
			faults = append(faults, fmt.Errorf("policies[%d]: a KeepOnChange cannot be Prepaid, since another process may have smaller numbers than permits were charged by: leave out one of them", i))
		default:
			if !isNil(one) {
				faults = append(faults, fmt.Errorf("policies[%d] (%T): it cannot be Prepaid: use a TokenBucket, or a window", i, one))
			}
		}
	}
	return kept, errors.Join(faults...)
}

// owed returns the MaxDebt of a policy.
func owed(p Policy) int64 {
	switch p := p.(type) {
	case TokenBucket:
		return p.MaxDebt
	case FixedWindow:
		return p.MaxDebt
	case CalendarWindow:
		return p.MaxDebt
	}
	v := reflect.ValueOf(p)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return 0
	}
	pointed, _ := reflect.TypeAssert[Policy](v.Elem())
	return owed(pointed)
}

// bucket returns a bucket whose Burst is smaller by what refills while permits are held.
func (p Prepaid) bucket(b TokenBucket) (TokenBucket, error) {
	if b.Rate < 1 || b.Per < time.Millisecond {
		return b, nil // compile reports the fault
	}
	refills := math.Ceil(float64(b.Rate) * float64(p.Term) / float64(b.Per))
	if refills > float64(b.burst()-1) {
		return b, fmt.Errorf("Prepaid.Term is %v, in which %.0f permits refill: the Burst of %d must be larger; use a shorter Term or a larger Burst",
			p.Term, refills, b.burst())
	}
	b.Name = b.PolicyName()
	b.Burst = b.burst() - int64(refills)
	return b, nil
}

// returnPrepaid gives back the permits that were charged ahead and not granted. It waits
// for charges that are on their way. The error joins those of all calls.
func (l *Limiter) returnPrepaid(ctx context.Context) error {
	if l.accounts == nil {
		return nil
	}
	for _, q := range l.accounts.charges.all() {
		select {
		case <-q.answered:
		case <-ctx.Done():
		}
	}
	var errs []error
	for _, p := range l.accounts.permits.all() {
		if err := ctx.Err(); err != nil { // the other permits are given back when they end
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, p.giveBack(ctx))
	}
	return errors.Join(errs...)
}

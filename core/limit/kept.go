package limit

import (
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/keyspace"
)

// keptOnChange is a policy that keeps its state when its numbers change.
type keptOnChange struct{ Policy }

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
func KeepOnChange(p Policy) Policy {
	if isNil(p) {
		return p
	}
	switch p := p.(type) {
	case keptOnChange:
		return p
	case shadowed:
		return shadowed{KeepOnChange(p.Policy)}
	case perRequest:
		return perRequest{KeepOnChange(p.Policy)}
	case leased:
		return leased{KeepOnChange(p.Policy), p.lease}
	case banning:
		return banning{KeepOnChange(p.Policy), p.ban}
	}
	return keptOnChange{p}
}

func (k keptOnChange) compile() (rule, error) {
	var name, form string
	var numbers interface{ signature() string }
	compile := k.Policy.compile
	switch p := valueOf(k.Policy).(type) {
	case TokenBucket:
		name, form, numbers, compile = p.Name, "bucket", p, p.compileKept
	case FixedWindow:
		name, form, numbers = p.Name, "window-"+keyspace.Span(p.Window), p
	case SlidingWindow:
		name, form, numbers, compile = p.Name, "sliding-"+keyspace.Span(p.Window), p, p.compileKept
	case SlidingLog:
		name, form, numbers = p.Name, "log-"+keyspace.Span(p.Window), p
	case CalendarWindow:
		name, form, numbers = p.Name, "calendar-"+p.place(), p
	default:
		return nil, fmt.Errorf("KeepOnChange does not support a %T: use one of the policies of this package", p)
	}
	var nameless error
	if name == "" {
		nameless = errors.New("Name is empty: KeepOnChange needs a Name, because the numbers are not part of the key")
	}
	r, err := compile()
	if err := errors.Join(nameless, err); err != nil {
		return nil, err
	}
	r.id().tail = name + "!kept-" + form
	r.id().kept = numbers.signature()
	return r, nil
}

// mostKeptCount is the most that a counter of a SlidingWindow can hold: (mostKeptCount +
// 1)² is still exact.
const mostKeptCount = 1<<26 - 1

// compileKept returns a rule whose two counters are packed into one number in the same
// way whatever the Limit is.
func (p SlidingWindow) compileKept() (rule, error) {
	r, err := p.compile()
	if err != nil {
		return nil, err
	}
	s := r.(*sliding)
	s.largest = min(mostKeptCount, exact/4/s.length-1)
	if p.Limit > s.largest {
		return nil, fmt.Errorf("Limit is %d: KeepOnChange keeps at most %d in a SlidingWindow of %v; use a smaller Limit, or a FixedWindow",
			p.Limit, s.largest, time.Duration(s.length)*time.Millisecond)
	}
	return s, nil
}

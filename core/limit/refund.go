package limit

import (
	"context"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/misuse"
)

// Refund gives back what the decision took: for example for a login that succeeded, or for
// a request that was not served after all.
//
// It gives back to each policy, shadow policies included, what is left of the decision's
// own permits. For a window that is all of them while the window lasts, unless the window
// is one millisecond long. For a bucket it is what has not drained yet. A decision is
// refunded once, however many copies there are, and only until its ResetAfter has passed
// by the clock that counted it. So no caller can gain permits by it, unless the subject was
// Reset since the decision or a failover lost the decision. A call that reaches Redis later
// changes nothing.
//
// A nil error means that the permits were given back, or that none had been taken:
// because the cost was 0, because FailOpen decided, or because every policy was a shadow
// policy that would have denied. [ErrRefund] means that there is nothing to give back;
// its text says why. Any other error says that Redis did not confirm the refund. The
// refund then goes on in the background, as that of Settle does, but only until the
// decision's ResetAfter has passed. Refund uses only the values of ctx and does not end
// early with it. A decision that was made in process, by NewLocal or FailLocal, is given
// back in process.
//
// It costs one round trip, and one more the first time or if the clock of Redis must be
// read again; each takes up to the Budget. In Redis it leaves a marker for ten minutes. A
// permit that was charged ahead ([Prepaid]) is given back in process, at no cost, until
// its Term or its window ends.
//
// Refund is safe for concurrent use. A nil or zero Decision has nothing to give back.
func (d *Decision) Refund(ctx context.Context) error {
	misuse.Context(ctx)
	if d == nil || d.request == nil {
		return refuse("it is no decision of a limiter")
	}
	q := d.request
	if q.Peek || q.denied {
		return refuse("it was denied, or a Peek")
	}
	l := q.of
	if d.permits != nil {
		if err := d.permits.Refund(d.index, d.cost); err != nil {
			return refuse(err.Error())
		}
		l.changed(q.Subject)
		l.count.refunded.Add(1)
		return nil
	}
	c, err := q.conclude(refunds, 0)
	if err != nil {
		return err
	}
	_, took := l.longest(q)
	switch {
	case !took:
		c.end(concluded)
	case !q.local:
		_, err := c.finish(ctx)
		return err
	case !l.local.Refund(l.set, &q.Request, q.at):
		return errNothingLeft
	default:
		c.succeeded(Settlement{})
	}
	return nil
}

var (
	errTooLate     = refuse("its ResetAfter has passed")
	errNothingLeft = refuse("nothing of it is left")
)

func refuse(why string) error { return fmt.Errorf("%w: %s", ErrRefund, why) }

// longest returns how long after the decision any of its permits can be left, and whether
// it took any.
func (l *Limiter) longest(q *request) (longest time.Duration, took bool) {
	if q.open || q.Cost == 0 {
		return 0, false
	}
	for i, r := range l.set.Rules {
		if !q.Readings[i].Refused() {
			took = true
			longest = max(longest, r.Figures(q.Readings[i], q.Cost).ResetAfter)
		}
	}
	return longest, took
}

package stock

import (
	"context"
	"errors"
	"time"

	"github.com/neap-go/neap/core/script"
)

var errTooMany = errors.New("more has lapsed than the budget was enough for: what was swept stays so, ask again")

// sweeping is what a call does between its questions, as long as the answer is
// that something may have lapsed. It takes no longer than a budget.
type sweeping struct{ until time.Time }

// sweep has the units of leases that have ended come back.
func (w *sweeping) sweep(ctx context.Context, s *Stock, key string) error {
	if w.until.IsZero() {
		w.until = time.Now().Add(s.opts.Budget)
	}
	for from := int64(0); ; {
		if time.Now().After(w.until) {
			return &script.Error{Script: sweepScript.Name(), Class: script.ErrNotExecuted, Err: errTooMany}
		}
		n, _, _, err := s.number(ctx, sweepScript, key, integer(from))
		if err != nil || n <= 0 {
			return either(err, fault(sweepScript, n))
		}
		from = n
	}
}

package stock

import (
	"context"
	"errors"
	"time"

	"github.com/neap-go/neap/core/script"
)

var errTooMany = errors.New("more leases have ended than could be handled within the budget: those that were handled stay so, ask again")

// sweeping makes the units of ended leases return between the questions of one call. It
// takes no longer than a budget.
type sweeping struct{ until time.Time }

// sweep makes the units of leases that have ended return.
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
			return either(err, fault(n))
		}
		from = n
	}
}

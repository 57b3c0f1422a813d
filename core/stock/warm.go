package stock

import (
	"context"

	"github.com/neap-go/neap/core/internal/ask"
)

// Warm connects to Redis, loads the scripts on every node of a cluster, and makes one
// call that changes nothing. The first reservations are then granted within the budget.
// Call it at start, with a deadline of some seconds; without a deadline it takes up to 10
// s.
//
// Warm returns the error of Redis, so that a start can tell a wrong password from a
// missing permission. A user who may run scripts but not load them gets no error if the
// scripts are loaded already.
func (s *Stock) Warm(ctx context.Context) error {
	if !s.made() {
		return errStock
	}
	return ask.Warm(ctx, s.store, ask.About(leftScript, s.space.Key("warm", "")),
		openScript, reserveScript, renewScript, cancelScript, sweepScript, restockScript, leftScript, buyersScript, forgetScript)
}

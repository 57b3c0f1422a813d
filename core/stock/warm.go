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
// missing permission. It is no error if SCRIPT LOAD is refused, as long as Redis answers
// that call. Warm writes nothing, so it does not notice a Redis that is full or a
// replica; `neap doctor` does.
func (s *Stock) Warm(ctx context.Context) error {
	if !s.made() {
		return errStock
	}
	return ask.Warm(ctx, s.store, ask.About(leftScript, s.space.Key("warm", "")),
		openScript, reserveScript, renewScript, cancelScript, sweepScript, restockScript, leftScript, buyersScript, forgetScript)
}

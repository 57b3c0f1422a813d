package stock

import (
	"context"

	"github.com/neap-go/neap/core/internal/ask"
)

// Warm connects to Redis and has it load the scripts, on every node of a
// cluster, and asks once about an item that nobody has: the first reservations
// then are granted within the budget. Call it at start, with a deadline of some
// seconds; it takes up to 10 s where ctx has none.
//
// Its error is that of Redis, so that a start can tell a wrong password or a
// missing permission. A user who may run scripts but not load them is no error,
// as long as they are loaded.
func (s *Stock) Warm(ctx context.Context) error {
	if !s.made() {
		return errStock
	}
	return ask.Warm(ctx, s.store, ask.About(leftScript, s.space.Key("warm", "")),
		openScript, reserveScript, renewScript, cancelScript, sweepScript, restockScript, leftScript, buyersScript, forgetScript)
}

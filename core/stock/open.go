package stock

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/token"
)

// Open puts 1 to [MaxUnits] units of an item up for sale until a given time, which is at
// most 366 days away by the server's clock. It reports false if the item is open already.
// The item then keeps its units and its end. It costs one round trip.
//
// Redis deletes the record at until, and later confirmations fail. So choose the time of
// the last confirmation, not of the last order.
//
// If Redis has lost an item, by a flush or an eviction, it looks as if it had never been
// opened. If you open it again, open only the units that are not sold yet.
//
// Open returns
//
//   - [ErrItem], [ErrUnits] or [ErrUntil];
//   - [ErrDisagrees] if the key holds something else;
//   - ctx.Err() if the caller's context ended;
//   - a [*script.Error] if Redis could not answer. After [script.ErrMaybeExecuted] the
//     item may be open: call Open again.
func (s *Stock) Open(ctx context.Context, item string, units int64, until time.Time) (opened bool, err error) {
	key, err := s.key(item)
	switch {
	case err != nil:
		return false, err
	case units < 1 || units > MaxUnits:
		return false, ErrUnits
	case time.Until(until) > 2*longest: // Redis could not compute with its milliseconds
		return false, ErrUntil
	}
	n, _, _, err := s.number(ctx, openScript, key,
		integer(units), integer(until.UnixMilli()), milliseconds(longest), token.New())
	if err != nil || n < 0 {
		return false, either(err, fault(n))
	}
	return n == 1, nil
}

// Restock adds units, once for each id, such as the number of a delivery. If you do not
// know whether they were added, call Restock again under the same id. To remove units,
// reserve them with ReserveOptions.Confirm. Restock costs one round trip.
//
// Restock returns
//
//   - [ErrItem] or [ErrID];
//   - [ErrUnits], also if there would be more than [MaxUnits] in all;
//   - [ErrUnknown] or [ErrDisagrees];
//   - [ErrQuantity] if the id was used for another number of units;
//   - ctx.Err() if the caller's context ended;
//   - a [*script.Error] if Redis could not answer.
func (s *Stock) Restock(ctx context.Context, item, id string, units int64) error {
	key, err := s.key(item)
	switch {
	case err != nil:
		return err
	case id == "":
		return ErrID
	case units < 1 || units > MaxUnits:
		return ErrUnits
	}
	n, _, _, err := s.number(ctx, restockScript, key, integer(units), s.space.Subject(id), integer(MaxUnits))
	if err == nil && n == none {
		return ErrUnits
	}
	return either(err, fault(n))
}

// Forget deletes an item and everything that Redis knows about it, its buyers included.
// It reports whether there was such an item. It is for operators and for tests. It costs
// one round trip. After [script.ErrMaybeExecuted] the item may have been deleted, or may
// still be deleted. Forget does not ask a second time, because that could delete the next
// sale. The error is [ErrItem], ctx.Err() or a [*script.Error].
func (s *Stock) Forget(ctx context.Context, item string) (bool, error) {
	key, err := s.key(item)
	if err != nil {
		return false, err
	}
	n, err := s.once(ctx, forgetScript, key)
	return n > 0, err
}

func either(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

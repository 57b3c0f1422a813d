package stock

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/token"
)

// Open puts 1 to [MaxUnits] units of an item up for sale, until a time no more than 366
// days away by the server's clock. It reports false if the item is open already; the
// item then keeps its units and its end. It costs one round trip.
//
// An item that Redis has lost, by a flush or an eviction, looks like one that was never
// opened. If you open it again, open only the units that are not sold yet. The record is
// deleted at until, and later confirmations fail: choose the time of the last
// confirmation, not of the last order.
//
// The errors are [ErrItem], [ErrUnits], [ErrUntil]; [ErrDisagrees] if the key holds
// something else; ctx.Err(); and a [*script.Error]. With [script.ErrMaybeExecuted] the
// item may be open: call Open again.
func (s *Stock) Open(ctx context.Context, item string, units int64, until time.Time) (opened bool, err error) {
	key, err := s.key(item)
	switch {
	case err != nil:
		return false, err
	case units < 1 || units > MaxUnits:
		return false, ErrUnits
	case time.Until(until) > 2*longest: // its milliseconds may be no number for Redis
		return false, ErrUntil
	}
	n, _, _, err := s.number(ctx, openScript, key,
		integer(units), integer(until.UnixMilli()), milliseconds(longest), token.New())
	if err != nil || n < 0 {
		return false, either(err, fault(openScript, n))
	}
	return n == 1, nil
}

// Restock adds units, once for each id, such as the number of a delivery. If you do not
// know whether it was done, call it again under the same id. To remove units, reserve
// them with Confirm. It costs one round trip.
//
// The errors are [ErrItem], [ErrID]; [ErrUnits], also if there would be more than
// [MaxUnits] in all; [ErrUnknown]; [ErrDisagrees]; [ErrQuantity] if the id was used for
// another number; ctx.Err(); and a [*script.Error].
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
	return either(err, fault(restockScript, n))
}

// Forget deletes an item and all that is known about it, its buyers included, and
// reports whether there was one. It is for operators and for tests. It costs one round
// trip. With [script.ErrMaybeExecuted] the item may have been deleted, or may be deleted
// yet: Forget does not ask again, because that could delete the next sale.
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

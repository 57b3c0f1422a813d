package stock

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/token"
)

// Open puts an item up for sale, so many units of it, 1 to [MaxUnits], until a
// time that is no more than 366 days away by the server's clock. It says false
// of an item that is open already, which stays as it was, its units and its
// until too. It costs one round trip.
//
// An item that is gone, because Redis was flushed or has evicted it, cannot be
// told from one that was never opened: of what has been sold already open only
// the rest. What is confirmed after until is not known any more, so until is when
// the last confirmation may come, and not the last order.
//
// The errors are [ErrItem], [ErrUnits], [ErrUntil]; [ErrDisagrees] where there is
// something that is no item; ctx.Err(); and a [*script.Error], with
// [script.ErrMaybeExecuted] when it may be open: ask again.
func (s *Stock) Open(ctx context.Context, item string, units int64, until time.Time) (opened bool, err error) {
	key, err := s.key(item)
	switch {
	case err != nil:
		return false, err
	case units < 1 || units > MaxUnits:
		return false, ErrUnits
	case time.Until(until) > 2*longest: // of which the milliseconds may be no number for Redis
		return false, ErrUntil
	}
	n, _, _, err := s.number(ctx, openScript, key,
		integer(units), integer(until.UnixMilli()), milliseconds(longest), token.New())
	if err != nil || n < 0 {
		return false, either(err, fault(openScript, n))
	}
	return n == 1, nil
}

// Restock puts more units in, once for each id, such as a delivery's: who does
// not know whether it was done does it again under the same id. It costs one
// round trip. Who wants units to be gone reserves them, with Confirm.
//
// The errors are [ErrItem], [ErrID]; [ErrUnits], also when there would be more
// than [MaxUnits] in all; [ErrUnknown]; [ErrDisagrees]; [ErrQuantity] when the id
// was used for another number; ctx.Err(); and a [*script.Error].
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

// Forget deletes an item and all that is known of it, who has bought what among
// it, and says whether there was one. It is for an operator, and for tests. It
// costs one round trip. With [script.ErrMaybeExecuted] it may have been deleted,
// or may be yet: it is not asked again, which could delete the next sale.
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

package stock

import (
	"context"
	"iter"
	"time"

	"github.com/neap-go/neap/core/internal/reply"
)

// Level says how many units of an item there are. Units is the sum of Left, Held and
// Sold.
type Level struct {
	Units    int64         // put in by Open and Restock
	Left     int64         // for sale
	Held     int64         // reserved, on a lease
	Sold     int64         // confirmed
	Lifetime time.Duration // until the record is deleted
}

// Left returns how many units there are at the moment of the call. It returns [ErrItem],
// [ErrUnknown], [ErrDisagrees], ctx.Err() or a [*script.Error]. It costs one round trip;
// if leases have ended, it costs as many more as Reserve does then.
func (s *Stock) Left(ctx context.Context, item string) (Level, error) {
	key, err := s.key(item)
	if err != nil {
		return Level{}, err
	}
	var lapsed sweeping
	for {
		reply, _, _, err := s.asker.Ask(ctx, leftScript, key)
		if err != nil {
			return Level{}, err
		}
		switch now, is := level(reply); {
		case is:
			return now, nil
		case reply != int64(due):
			return Level{}, fault(reply.(int64))
		}
		if err := lapsed.sweep(ctx, s, key); err != nil {
			return Level{}, err
		}
	}
}

// level reads the reply of stock_left.lua about an item.
func level(told any) (l Level, ok bool) {
	n, ok := reply.Numbers(told)
	if !ok || len(n) != 5 {
		return Level{}, false
	}
	return Level{
		Units: n[0], Left: n[1], Held: n[2], Sold: n[3], Lifetime: time.Duration(n[4]) * time.Millisecond,
	}, true
}

func isLevel(told any) bool {
	_, ok := level(told)
	return ok
}

// Buyer is one reservation of an item.
type Buyer struct {
	Buyer    string // as Redis stores it: the buyer, or a hash
	ID       string // as Redis stores it
	Quantity int64
	Sold     bool
	Lease    time.Duration // what is left of the lease; 0 if the units are sold
}

// page is about how many fields of a record one call looks at.
const page = 250

// Buyers iterates over the reservations of an item, in no order. It costs a round trip
// for each hundred or so. A reservation that is made or ends during the iteration may be
// missing or come twice. The iteration ends with the first error; the errors are those of
// Left.
func (s *Stock) Buyers(ctx context.Context, item string) iter.Seq2[Buyer, error] {
	return func(yield func(Buyer, error) bool) {
		key, err := s.key(item)
		if err != nil {
			yield(Buyer{}, err)
			return
		}
		for cursor := "0"; ; {
			found, next, err := s.buyers(ctx, key, cursor)
			if err != nil {
				yield(Buyer{}, err)
				return
			}
			for _, b := range found {
				if !yield(b, nil) {
					return
				}
			}
			if next == "0" {
				return
			}
			cursor = next
		}
	}
}

func (s *Stock) buyers(ctx context.Context, key, cursor string) (found []Buyer, next string, err error) {
	reply, _, _, err := s.asker.Ask(ctx, buyersScript, key, cursor, integer(page))
	if err != nil {
		return nil, "", err
	}
	if n, is := reply.(int64); is {
		return nil, "", fault(n)
	}
	found, next, _ = buyers(reply)
	return found, next, nil
}

// buyers reads the reply of stock_buyers.lua about an item.
func buyers(told any) (found []Buyer, next string, ok bool) {
	parts, _ := told.([]any)
	if len(parts)%4 != 1 {
		return nil, "", false
	}
	next, ok = parts[0].(string)
	for i := 1; i < len(parts); i += 4 {
		b := Buyer{}
		var left int64
		var oks [4]bool
		b.Buyer, oks[0] = parts[i].(string)
		b.ID, oks[1] = parts[i+1].(string)
		b.Quantity, oks[2] = parts[i+2].(int64)
		left, oks[3] = parts[i+3].(int64)
		ok = ok && oks == [4]bool{true, true, true, true}
		if b.Sold = left < 0; !b.Sold {
			b.Lease = time.Duration(left) * time.Millisecond
		}
		found = append(found, b)
	}
	return found, next, ok
}

func isBuyers(told any) bool {
	_, _, ok := buyers(told)
	return ok
}

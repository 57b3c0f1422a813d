package main

import (
	"context"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/upgrade/wire"
)

var stockOps = map[string]op{
	"stock.open": func(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
		s, err := w.stock(c)
		if err == nil {
			a.OK, err = s.Open(ctx, c.Key, c.N, time.Now().Add(span(c.For)))
		}
		return err
	},
	"stock.restock": func(ctx context.Context, w *worker, c *wire.Call, _ *wire.Answer) error {
		s, err := w.stock(c)
		if err == nil {
			err = s.Restock(ctx, c.Key, c.Order, c.N)
		}
		return err
	},
	"stock.reserve": reserve,
	"stock.resume": func(_ context.Context, w *worker, c *wire.Call, _ *wire.Answer) error {
		s, err := w.stock(c)
		if err != nil {
			return err
		}
		r, err := s.Resume(c.Key, c.Buyer, c.Order, &stock.ReserveOptions{Quantity: c.N})
		if err == nil {
			w.keep(c, r)
		}
		return err
	},
	"stock.confirm": conclude((*stock.Reservation).Confirm),
	"stock.cancel":  conclude((*stock.Reservation).Cancel),
	"stock.renew": func(ctx context.Context, w *worker, c *wire.Call, _ *wire.Answer) error {
		r, err := got[*stock.Reservation](w, c)
		if err == nil {
			err = r.Renew(ctx)
		}
		return err
	},
	"stock.left": func(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
		s, err := w.stock(c)
		if err != nil {
			return err
		}
		l, err := s.Left(ctx, c.Key)
		a.Counts = []int64{l.Units, l.Left, l.Held, l.Sold}
		return err
	},
	"stock.buyers": func(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
		s, err := w.stock(c)
		if err != nil {
			return err
		}
		for b, err := range s.Buyers(ctx, c.Key) {
			if err != nil {
				return err
			}
			state := "held"
			if b.Sold {
				state = "sold"
			}
			a.Names = append(a.Names, fmt.Sprintf("%s %s %d %s", b.Buyer, b.ID, b.Quantity, state))
		}
		return nil
	},
}

func (w *worker) stock(c *wire.Call) (*stock.Stock, error) {
	return one(w, "stock", &c.Conf, func() (*stock.Stock, error) {
		return stock.New(w.store(&c.Conf), c.Conf.Name, &stock.Options{Lease: span(c.Conf.Lease)})
	})
}

// reserve holds units, or sells them at once if How says so. OK says that an earlier call
// made the same reservation.
func reserve(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
	s, err := w.stock(c)
	if err != nil {
		return err
	}
	r, err := s.Reserve(ctx, c.Key, c.Buyer, c.Order, &stock.ReserveOptions{Quantity: c.N, Confirm: c.How == "sell"})
	if err != nil {
		return err
	}
	a.OK = r.Again()
	w.keep(c, r)
	return nil
}

func conclude(how func(*stock.Reservation, context.Context) error) op {
	return func(ctx context.Context, w *worker, c *wire.Call, _ *wire.Answer) error {
		r, err := got[*stock.Reservation](w, c)
		if err == nil {
			err = how(r, ctx)
			w.forget(c)
		}
		return err
	}
}

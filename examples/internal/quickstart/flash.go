package quickstart

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/stock"
)

const (
	buyerHeader = "X-Buyer"
	flashName   = "flash" // of its keys
	flashItem   = "phone"
	flashUnits  = 100
	flashLasts  = 24 * time.Hour
)

// flashRoutes sell, and tell what is left.
func flashRoutes(w *wiring) []Route {
	s, err := stock.New(w.redis, flashName, &stock.Options{Budget: 4 * w.budget})
	if w.failed(err) {
		return nil
	}
	buy := gate.Reserve(s, gate.ByParam("item"), gate.ByHeader(buyerHeader),
		&gate.ReserveOptions{Confirm: true, OnError: report(slog.Default())})
	return []Route{
		{
			method: "POST", Path: "/flash/{item}", Gate: buy, Work: sold,
			says: fmt.Sprintf("%d of the item %s, one for each %s", flashUnits, flashItem, buyerHeader),
		},
		{Path: "/flash/{item}", Gate: whole{shelf{s}}, says: "how many are left, and sold"},
	}
}

// open puts the phones in, unless they are there. A shop does that once, and not at
// each start of a process: if Redis had lost its data, that would sell phones again.
func (w *wiring) open(ctx context.Context) error {
	s, err := stock.New(w.redis, flashName, &stock.Options{Budget: demoBudget})
	if err != nil {
		return err
	}
	if _, err := s.Open(ctx, flashItem, flashUnits, time.Now().Add(flashLasts)); err != nil {
		return fmt.Errorf("the item %s could not be opened: %w", flashItem, err)
	}
	return nil
}

// sold answers what the buyer has from now on.
func sold(ctx context.Context, _ Asked) Result {
	own, ok := stock.FromContext(ctx)
	if !ok {
		return text(500, "nothing was reserved\n")
	}
	return page(201, map[string]any{"item": own.Item(), "quantity": own.Quantity()})
}

// shelf shows an item.
type shelf struct{ stock *stock.Stock }

func (s shelf) Serve(r gate.Request) gate.Reply {
	level, err := s.stock.Left(r.Context(), r.Param("item"))
	switch {
	case errors.Is(err, stock.ErrUnknown), errors.Is(err, stock.ErrItem):
		return answering(contentProblem, page(404, map[string]any{
			"type": gate.TypeStock + "unknown-item", "title": "There is no such item", "status": 404,
		}))
	case err != nil:
		report(slog.Default())(r, err)
		return answering(contentProblem, page(503, map[string]any{"title": "Service Unavailable", "status": 503}))
	}
	return answering(contentJSON, page(200, map[string]any{
		"units": level.Units, "left": level.Left, "held": level.Held, "sold": level.Sold,
	}))
}

// answering is a result as an endpoint sends it.
func answering(contentType string, r Result) gate.Reply {
	return gate.Reply{Status: r.Status, Body: []byte(r.Text), Header: []gate.Field{
		{Name: "Content-Type", Value: contentType}, {Name: "Cache-Control", Value: "no-store"},
	}}
}

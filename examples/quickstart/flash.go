package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/stock"
)

const (
	buyerHeader = "X-Buyer"
	flashItem   = "phone"
	flashUnits  = 100
	flashLasts  = 24 * time.Hour
)

// flashRoutes sell, and tell what is left.
func flashRoutes() []route {
	return []route{
		{method: "POST", path: "/flash/{item}", sells: true, key: gate.ByHeader(buyerHeader), work: sold},
		{path: "/flash/{item}", sells: true},
	}
}

func (w wiring) stock(budget time.Duration) (*stock.Stock, error) {
	return stock.New(w.redis, "flash", &stock.Options{Budget: budget})
}

// open puts the phones in, unless they are there. A shop does that once, and not
// whenever a process begins, or what was sold is sold again when Redis lost it.
func (w wiring) open(ctx context.Context) error {
	s, err := w.stock(demoBudget)
	if err != nil {
		return err
	}
	if _, err := s.Open(ctx, flashItem, flashUnits, time.Now().Add(flashLasts)); err != nil {
		return fmt.Errorf("the item %s could not be opened: %w", flashItem, err)
	}
	return nil
}

// flash makes the gate for buyers, and the endpoint that shows the item.
func (w wiring) flash(r route) (gate.Gate, error) {
	s, err := w.stock(4 * w.budget)
	if err != nil {
		return nil, err
	}
	if r.method == "" {
		return whole{shelf{s}}, nil
	}
	return gate.Reserve(s, gate.ByParam("item"), r.key, &gate.ReserveOptions{
		Confirm: true, OnError: report(slog.Default()),
	}), nil
}

// sold answers who has a unit from now on.
func sold(ctx context.Context, _ asked) result {
	own, ok := stock.FromContext(ctx)
	if !ok {
		return text(500, "nothing was reserved\n")
	}
	page, err := json.Marshal(map[string]any{"item": own.Item(), "quantity": own.Quantity()})
	if err != nil {
		return text(500, "the item cannot be told\n")
	}
	return result{status: 201, contentType: contentJSON, text: string(page) + "\n"}
}

// shelf shows an item.
type shelf struct{ stock *stock.Stock }

func (s shelf) Serve(r gate.Request) gate.Reply {
	level, err := s.stock.Left(r.Context(), r.Param("item"))
	if err != nil {
		if errors.Is(err, stock.ErrUnknown) || errors.Is(err, stock.ErrItem) {
			return answering(404, "application/problem+json", map[string]any{
				"type": gate.TypeStock + "unknown-item", "title": "There is no such item", "status": 404,
			})
		}
		report(slog.Default())(r, err)
		return answering(503, "application/problem+json", map[string]any{"title": "Service Unavailable", "status": 503})
	}
	return answering(200, contentJSON, map[string]any{
		"units": level.Units, "left": level.Left, "held": level.Held, "sold": level.Sold,
	})
}

func answering(status int, kind string, page map[string]any) gate.Reply {
	body, err := json.Marshal(page)
	if err != nil {
		return gate.Reply{Status: 500}
	}
	return gate.Reply{Status: status, Body: append(body, '\n'), Header: []gate.Field{
		{Name: "Content-Type", Value: kind}, {Name: "Cache-Control", Value: "no-store"},
	}}
}

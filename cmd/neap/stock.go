package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/neap-go/neap/core/stock"
)

type stockGroup struct {
	Left    stockLeft    `cmd:"" help:"Show how many units of an item there are."`
	Restock stockRestock `cmd:"" help:"Add units."`
	Buyers  stockBuyers  `cmd:"" help:"Show the buyers that have units."`
}

// stocked is an item on the command line.
type stocked struct {
	Name string `arg:"" help:"The stock's name."`
	Item string `arg:"" help:"The item, as it was opened."`
}

func (s *stocked) open(ctx context.Context, a *app) (*stock.Stock, error) {
	_, st, err := a.begin(ctx)
	if err != nil {
		return nil, err
	}
	items, err := stock.New(st, s.Name, nil)
	if err != nil {
		return nil, usage(err)
	}
	return items, nil
}

// levelLine is how many units there are.
type levelLine struct {
	Name     string `json:"name"`
	Item     string `json:"item"`
	Units    int64  `json:"units"`
	Left     int64  `json:"left"`
	Held     int64  `json:"held"`
	Sold     int64  `json:"sold"`
	Lifetime int64  `json:"lifetime_ms"`
}

func (s *stocked) level(ctx context.Context, a *app, items *stock.Stock) error {
	l, err := items.Left(ctx, s.Item)
	if err != nil {
		return err
	}
	return a.show(levelLine{s.Name, s.Item, l.Units, l.Left, l.Held, l.Sold, l.Lifetime.Milliseconds()}, func(w *page) {
		w.row("ITEM", "UNITS", "LEFT", "HELD", "SOLD", "ENDS IN")
		w.row(s.Item, l.Units, l.Left, l.Held, l.Sold, l.Lifetime)
	})
}

type stockLeft struct{ stocked }

func (s *stockLeft) Run(ctx context.Context, a *app) error {
	items, err := s.open(ctx, a)
	if err != nil {
		return err
	}
	return s.level(ctx, a, items)
}

type stockRestock struct {
	stocked

	Units int64  `arg:"" help:"How many to add."`
	ID    string `arg:"" help:"What names this delivery: under one ID units are added once, however often you repeat it."`
	Yes   bool   `short:"y" help:"Do not ask."`
}

func (s *stockRestock) Run(ctx context.Context, a *app) error {
	items, err := s.open(ctx, a)
	if err != nil {
		return err
	}
	if err := a.confirm(ctx, s.Yes, fmt.Sprintf("Add %s of %s, as delivery %s?", count(int(s.Units), "unit"), s.Item, s.ID)); err != nil {
		return err
	}
	if err := items.Restock(ctx, s.Item, s.ID, s.Units); err != nil {
		return err
	}
	return s.level(ctx, a, items)
}

type stockBuyers struct {
	stocked

	Most int `default:"1000" help:"How many to show; 0 for all."`
}

// buyerLine is one reservation.
type buyerLine struct {
	Buyer    string `json:"buyer"`
	ID       string `json:"id"`
	Quantity int64  `json:"quantity"`
	Sold     bool   `json:"sold"`
	Lease    int64  `json:"lease_ms"`
}

// buyersPage is what is known of an item's buyers.
type buyersPage struct {
	Name   string      `json:"name"`
	Item   string      `json:"item"`
	Buyers []buyerLine `json:"buyers"`
	All    bool        `json:"all"`
}

func (s *stockBuyers) Run(ctx context.Context, a *app) error {
	items, err := s.open(ctx, a)
	if err != nil {
		return err
	}
	result := buyersPage{s.Name, s.Item, []buyerLine{}, true}
	known := map[[2]string]bool{} // a reservation may come twice
	for b, err := range items.Buyers(ctx, s.Item) {
		if err != nil {
			return err
		}
		if known[[2]string{b.Buyer, b.ID}] {
			continue
		}
		known[[2]string{b.Buyer, b.ID}] = true
		if s.Most > 0 && len(result.Buyers) == s.Most {
			result.All = false
			break
		}
		result.Buyers = append(result.Buyers, buyerLine{b.Buyer, b.ID, b.Quantity, b.Sold, b.Lease.Milliseconds()})
	}
	slices.SortFunc(result.Buyers, func(a, b buyerLine) int { return cmp.Or(cmp.Compare(a.Buyer, b.Buyer), cmp.Compare(a.ID, b.ID)) })
	return a.show(result, func(w *page) {
		if len(result.Buyers) == 0 {
			w.linef("No buyer has any of %s.", s.Item)
			return
		}
		w.row("BUYER", "ID", "QUANTITY", "", "LAPSES IN")
		for _, b := range result.Buyers {
			state := "held"
			if b.Sold {
				state = "sold"
			}
			w.row(b.Buyer, b.ID, b.Quantity, state, duration(b.Lease))
		}
		if !result.All {
			w.linef("There are more: see --most.")
		}
	})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/neap-go/neap/core/stock"
)

// told is how often a buyer was told what.
type told struct{ got, yours, soldOut int }

// tally is what all buyers were told.
type tally struct {
	told  map[string]told
	other map[string]int // answers that a sale does not give
	took  time.Duration
}

func (t *tally) add(buyer, what string) {
	b := t.told[buyer]
	switch what {
	case created:
		b.got++
	case yours:
		b.yours++
	case soldOut:
		b.soldOut++
	default:
		if t.other == nil {
			t.other = map[string]int{}
		}
		t.other[what]++
	}
	t.told[buyer] = b
}

// sum counts what was sold and refused, and what buyers got beside their first.
func (t *tally) sum() (sum told, duplicates int) {
	for _, b := range t.told {
		sum.got += b.got
		sum.yours += b.yours
		sum.soldOut += b.soldOut
		duplicates += max(b.got-1, 0)
	}
	return sum, duplicates
}

func (t *tally) String() string {
	sum, duplicates := t.sum()
	n := sum.got + sum.yours + sum.soldOut
	return fmt.Sprintf("%d sold, %d refused (%d sold out, %d had one), %d duplicates, %.0f requests/s",
		sum.got, sum.yours+sum.soldOut, sum.soldOut, sum.yours, duplicates, float64(n)/t.took.Seconds())
}

// judge says what of the stock is not as the answers have it.
func (c crowd) judge(ctx context.Context, phones *stock.Stock, t *tally) error {
	level, err := phones.Left(ctx, item)
	if err != nil {
		return err
	}
	known := map[string]stock.Buyer{}
	for b, err := range phones.Buyers(ctx, item) {
		if err != nil {
			return err
		}
		known[b.Buyer] = b
	}
	return c.compare(t, level, known)
}

func (c crowd) compare(t *tally, level stock.Level, known map[string]stock.Buyer) error {
	var faults []error
	wrong := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	sum, duplicates := t.sum()
	switch n := sum.got + sum.yours + sum.soldOut; {
	case len(t.other) > 0:
		wrong("a sale does not give these answers: %v", t.other)
	case n != c.requests || len(t.told) != c.buyers:
		wrong("%d answers to %d buyers", n, len(t.told))
	}
	if sum.got != c.units || duplicates != 0 {
		wrong("%d of %d were sold, %d of them to buyers who had one", sum.got, c.units, duplicates)
	}
	units := int64(c.units)
	if level.Units != units || level.Left != 0 || level.Held != 0 || level.Sold != units {
		wrong("of %d units %d are left, %d held and %d sold", level.Units, level.Left, level.Held, level.Sold)
	}
	strangers := maps.Clone(known)
	for buyer := range t.told {
		delete(strangers, nameOf(buyer))
	}
	if len(strangers) > 0 {
		wrong("the stock knows %d buyers who never asked", len(strangers))
	}
	// A request is decided as a whole: whoever got one had none before, and is told
	// so ever after; and there were none left for whoever got none.
	for _, buyer := range slices.Sorted(maps.Keys(t.told)) {
		b := t.told[buyer]
		if b.got > 0 && b.soldOut > 0 || b.got == 0 && b.yours > 0 {
			wrong("%s was told %+v", buyer, b)
		}
		has, ok := known[nameOf(buyer)]
		if ok != (b.got > 0) || ok && (!has.Sold || has.Quantity != 1) {
			wrong("%s was told %+v, and the stock says %+v", buyer, b, has)
		}
	}
	return errors.Join(faults[:min(len(faults), 10)]...)
}

// nameOf is what the gate calls a buyer.
func nameOf(buyer string) string { return "header:x-buyer=" + buyer }

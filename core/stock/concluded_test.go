package stock_test

import (
	"context"
	"testing"

	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/gatefake"
)

func TestConcluded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts    *stock.ReserveOptions
		by      func(context.Context, *stock.Reservation) error
		want    bool
		hasSold bool
	}{
		"held":                  {nil, nil, false, false},
		"confirmed":             {nil, func(ctx context.Context, r *stock.Reservation) error { return r.Confirm(ctx) }, true, true},
		"cancelled":             {nil, func(ctx context.Context, r *stock.Reservation) error { return r.Cancel(ctx) }, true, false},
		"at once":               {atOnce, nil, false, true},
		"at once, confirmed":    {atOnce, func(ctx context.Context, r *stock.Reservation) error { return r.Confirm(ctx) }, true, true},
		"at once and cancelled": {atOnce, func(ctx context.Context, r *stock.Reservation) error { return r.Cancel(ctx) }, true, false},
	} {
		s := newStock(t, gatefake.Redis(t), "", nil)
		open(t, s, "phone", 1)
		r := reserve(t, s, "phone", "ann", "17", c.opts)
		if c.by != nil {
			if err := c.by(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		if r.Concluded() != c.want || r.Confirmed() != c.hasSold {
			t.Errorf("%s: got concluded %t, confirmed %t, want %t, %t",
				name, r.Concluded(), r.Confirmed(), c.want, c.hasSold)
		}
	}
}

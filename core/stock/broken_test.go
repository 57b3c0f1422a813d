package stock_test

import (
	"testing"

	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestABrokenRecordIsNoOutage of an item.
func TestABrokenRecordIsNoOutage(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	for name, opts := range map[string]*stock.ReserveOptions{"held": nil, "sold": atOnce} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prefix := redistest.Prefix(t)
			s := newStock(t, srv.Client(t), prefix, nil)
			storetest.Spoil(t, srv.Admin(t), prefix, func() []func() error {
				open(t, s, "item", 5)
				r := reserve(t, s, "item", "buyer", "1", opts)
				return []func() error{
					func() error { _, err := s.Reserve(t.Context(), "item", "buyer", "1", opts); return err },
					func() error { _, err := s.Reserve(t.Context(), "item", "another", "2", opts); return err },
					func() error { _, err := s.Left(t.Context(), "item"); return err },
					func() error { return r.Renew(t.Context()) },
					func() error { return r.Confirm(t.Context()) },
					func() error { return r.Cancel(t.Context()) },
				}
			})
		})
	}
}

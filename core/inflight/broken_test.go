package inflight

import (
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestABrokenRecordIsInNoDoubt: it is no outage.
func TestABrokenRecordIsInNoDoubt(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	prefix := redistest.Prefix(t) // the last attempt may leave a record that lives for ever
	c := strict(t, srv.Client(t), prefix, 2, time.Hour)
	second := func(_ any, err error) error { return err }
	storetest.Spoil(t, srv.Admin(t), prefix, func() []func() error {
		slot := must(c.Try(t.Context(), "s"))(t)
		return []func() error{
			func() error { return second(c.Try(t.Context(), "s")) },
			func() error { return second(c.InFlight(t.Context(), "s")) },
			func() error { return slot.Release(t.Context()) },
		}
	})
}

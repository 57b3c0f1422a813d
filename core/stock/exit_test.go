package stock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestAnExitSellsToNobody: a hook ends the goroutine that reserves. What Redis may have
// granted to it is given back, also if it was sold.
func TestAnExitSellsToNobody(t *testing.T) {
	t.Parallel()
	for how, opts := range map[string]*stock.ReserveOptions{"held": nil, "sold": {Confirm: true}} {
		for when, after := range map[string]bool{"before": false, "after": true} {
			synctest.Test(t, func(t *testing.T) {
				rdb := inBubble(t)
				hook := &redistest.ExitHook{After: after}
				rdb.AddHook(hook)
				s, err := stock.New(storetest.Open(t, rdb, store.Options{Queue: store.Direct}), "test", nil)
				if err != nil {
					t.Fatal(err)
				}
				open(t, s, "item", 1)
				if err := reserve(t, s, "item", "bob", "1", opts).Cancel(t.Context()); err != nil { // loads the scripts
					t.Fatal(err)
				}
				hook.Armed.Store(true)
				done := make(chan struct{})
				go func() {
					defer close(done)
					_, _ = s.Reserve(t.Context(), "item", "ann", "1", opts)
				}()
				<-done
				if hook.Armed.Load() {
					t.Errorf("%s, %s: got no call that the hook ended, want one", how, when)
				}
				time.Sleep(time.Minute)
				counts(t, s, "item", 1, 0, 0)
				time.Sleep(time.Hour) // until neap looks for nothing any more
			})
		}
	}
}

package limit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestWhatIsUsedIsChargedThroughAnExit: a hook ends the goroutine that settles or refunds.
func TestWhatIsUsedIsChargedThroughAnExit(t *testing.T) {
	t.Parallel()
	for what, how := range concludes {
		for when, after := range map[string]bool{"before": false, "after": true} {
			synctest.Test(t, func(t *testing.T) {
				rdb := redistest.BubbleClient(t, bubble(t))
				hook := &redistest.ExitHook{After: after}
				rdb.AddHook(hook)
				st := storetest.Open(t, rdb, store.Options{Queue: store.Direct})
				l := must(New(st, "exit", []Policy{FixedWindow{Limit: plenty, Window: time.Hour}}, closed(10*time.Second)))(t)
				if err := how.by(t.Context(), must(l.TakeN(t.Context(), "another", 100))(t)); err != nil { // loads the scripts
					t.Fatal(err)
				}
				d := must(l.TakeN(t.Context(), "s", 100))(t)
				hook.Armed.Store(true)
				done := make(chan struct{})
				go func() {
					defer close(done)
					_ = how.by(t.Context(), d)
				}()
				<-done
				time.Sleep(time.Minute)
				if hook.Armed.Load() {
					t.Errorf("%s, %s: got no call that the hook ended, want one", what, when)
				}
				if used := plenty - must(l.Peek(t.Context(), "s"))(t).Remaining; used != how.used {
					t.Errorf("%s, %s: got %d used, want %d", what, when, used, how.used)
				}
			})
		}
	}
}

package limit_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
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
				rdb := redistest.BubbleClient(t, redistest.Bubble(t))
				hook := &redistest.ExitHook{After: after}
				rdb.AddHook(hook)
				st := storetest.Open(t, rdb, store.Options{Queue: store.Direct})
				l := must(limit.New(st, "exit", []limit.Policy{limit.FixedWindow{Limit: plenty, Window: time.Hour}}, closed(patience)))(t)
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

// TestWhatIsUsedIsChargedOnceThroughExits: Redis was away when the decision was concluded.
// From then on a hook ends each goroutine in the background after the answer has come, for
// longer than the marker of the conclusion lives.
func TestWhatIsUsedIsChargedOnceThroughExits(t *testing.T) {
	t.Parallel()
	for what, how := range concludes {
		synctest.Test(t, func(t *testing.T) {
			rdb := redistest.BubbleClient(t, redistest.Bubble(t))
			rdb.Options().ContextTimeoutEnabled = true // hooks run on the goroutine that concludes
			hook, away := &redistest.ExitHook{After: true, Stays: true}, new(refusalHook)
			rdb.AddHook(hook)
			rdb.AddHook(away)
			st := storetest.Open(t, rdb, store.Options{Queue: store.Direct})
			l := must(limit.New(st, "exits", []limit.Policy{limit.FixedWindow{Limit: plenty, Window: 24 * time.Hour}}, closed(patience)))(t)
			if err := how.by(t.Context(), must(l.TakeN(t.Context(), "another", 100))(t)); err != nil { // loads the scripts
				t.Fatal(err)
			}
			d := must(l.TakeN(t.Context(), "s", 100))(t)
			away.Store(true) // no call may have run
			if err := how.by(t.Context(), d); err == nil {
				t.Errorf("%s without Redis: got no error, want one", what)
			}
			hook.Armed.Store(true)
			away.Store(false)
			time.Sleep(time.Hour) // longer than Redis keeps a marker
			hook.Armed.Store(false)
			if err := st.Drain(t.Context()); err != nil {
				t.Error(err)
			}
			d = must(l.TakeN(t.Context(), "s", 0))(t)
			if used, s := plenty-d.Remaining, l.Stats(); used != how.used || s.Concluding != 0 || s.Dropped != 1 {
				t.Errorf("%s: got %d used and stats %+v, want %d used, and one that was given up because no answer was heard", what, used, s, how.used)
			}
		})
	}
}

// refusalHook is a hook that sends nothing while it is true.
type refusalHook struct{ atomic.Bool }

func (*refusalHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*refusalHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r *refusalHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if r.Load() {
			cmd.SetErr(errors.New("a hook that refuses"))
			return cmd.Err()
		}
		return next(ctx, cmd)
	}
}

package limit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

// TestABanOutlivesRedis: a process that is one of several continues the ban that Redis
// last reported to it.
func TestABanOutlivesRedis(t *testing.T) {
	t.Parallel()
	for _, p := range limit.Steady { // but for what drains at once
		synctest.Test(t, func(t *testing.T) {
			ban := limit.Ban{After: 2, Within: time.Hour, For: 30 * time.Minute}
			all := instances(t, redistest.Bubble(t), 2, limit.Options{Instances: 2}, limit.WithBan(p, ban), limit.FixedWindow{Name: "beside", Limit: 1 << 40, Window: time.Hour})
			takeAll(t, all[0], false)
			if d := must(all[0].Take(t.Context(), "s"))(t); !d.Banned() {
				t.Errorf("%+v: the second denial: got no ban, want one", p)
			}
			must(all[1].Peek(t.Context(), "s"))(t) // it hears of the ban
			time.Sleep(10 * time.Minute)
			cut(all)
			for i, one := range all {
				if d := must(one.Take(t.Context(), "s"))(t); !d.Banned() || !d.Degraded || d.RetryAfter.Round(time.Second) < 20*time.Minute {
					t.Errorf("%+v: process %d: got %+v, want a ban for 20 minutes more", p, i, d)
				}
			}
			mend(t, all)
			must(all[0].Peek(t.Context(), "s"))(t)
			must(all[0].Unban(t.Context(), "s"))(t)
			cut(all)
			if d := must(all[0].Peek(t.Context(), "s"))(t); d.Banned() || !d.Degraded {
				t.Errorf("%+v: after the ban was lifted: got %+v, want no ban", p, d)
			}
		})
	}
}

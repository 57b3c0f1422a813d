package limit

import (
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestABrokenRecordIsNoOutage of any policy, alone and in a set, nor of slots.
func TestABrokenRecordIsNoOutage(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	beside := FixedWindow{Name: "beside", Limit: 1_000_000, Window: time.Minute}
	for name, p := range map[string]Policy{
		"window":   FixedWindow{Limit: 10, Window: time.Hour},
		"owing":    FixedWindow{Limit: 10, Window: time.Hour, MaxDebt: 10},
		"sliding":  SlidingWindow{Limit: 10, Window: time.Hour},
		"log":      SlidingLog{Limit: 10, Window: time.Hour},
		"bucket":   TokenBucket{Rate: 1, Per: time.Hour, Burst: 10},
		"fast":     TokenBucket{Rate: 1000, Per: time.Second, Burst: 100_000},
		"calendar": CalendarWindow{Limit: 10, Every: Month},
		"leased":   WithLease(FixedWindow{Limit: 10, Window: time.Hour}, time.Minute),
		"ban":      WithBan(FixedWindow{Limit: 10, Window: time.Hour}, Ban{After: 1, Within: time.Hour, For: time.Hour}),

		"kept bucket":  KeepOnChange(TokenBucket{Name: "kept", Rate: 1, Per: time.Hour, Burst: 10}),
		"kept window":  KeepOnChange(FixedWindow{Name: "kept", Limit: 10, Window: time.Hour}),
		"kept sliding": KeepOnChange(SlidingWindow{Name: "kept", Limit: 10, Window: time.Hour}),
	} {
		for with, policies := range map[string][]Policy{"alone": {p}, "in a set": {p, beside}} {
			t.Run(name+"/"+with, func(t *testing.T) {
				t.Parallel()
				prefix := redistest.Prefix(t)
				l := must(New(storetest.At(t, srv.Client(t), prefix), "n", policies, closed(time.Minute)))(t)
				banned, cost := hasBan(l.rules[0]), int64(4)
				if name == "fast" {
					cost = 40_000 // which does not drain meanwhile
				}
				storetest.Spoil(t, srv.Admin(t), prefix, func() []func() error {
					d := must(l.TakeN(t.Context(), "s", cost))(t)
					must(l.TakeN(t.Context(), "s", cost))(t)
					if banned {
						must(l.TakeN(t.Context(), "s", 4))(t)
					}
					calls := []func() error{
						func() error { return second(l.Take(t.Context(), "s")) },
						func() error { return second(l.TakeN(t.Context(), "s", 3)) },
						func() error { return second(l.Peek(t.Context(), "s")) },
						func() error { return d.Refund(t.Context()) },
					}
					if banned {
						calls = append(calls, func() error { return second(l.Banned(t.Context(), "s")) })
					}
					if name != "log" {
						calls = append(calls, func() error { return second(d.Settle(t.Context(), 2)) }, func() error { return second(d.Settle(t.Context(), 5)) })
					}
					return calls
				})
			})
		}
	}
}

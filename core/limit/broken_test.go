package limit_test

import (
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestABrokenRecordIsNoOutage of any policy, alone and in a set, nor of slots.
func TestABrokenRecordIsNoOutage(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	beside := limit.FixedWindow{Name: "beside", Limit: 1_000_000, Window: time.Minute}
	for name, p := range map[string]limit.Policy{
		"window":   limit.FixedWindow{Limit: 10, Window: time.Hour},
		"owing":    limit.FixedWindow{Limit: 10, Window: time.Hour, MaxDebt: 10},
		"sliding":  limit.SlidingWindow{Limit: 10, Window: time.Hour},
		"log":      limit.SlidingLog{Limit: 10, Window: time.Hour},
		"bucket":   limit.TokenBucket{Rate: 1, Per: time.Hour, Burst: 10},
		"fast":     limit.TokenBucket{Rate: 1000, Per: time.Second, Burst: 100_000},
		"calendar": limit.CalendarWindow{Limit: 10, Every: limit.Month},
		"leased":   limit.WithLease(limit.FixedWindow{Limit: 10, Window: time.Hour}, time.Minute),
		"ban":      limit.WithBan(limit.FixedWindow{Limit: 10, Window: time.Hour}, limit.Ban{After: 1, Within: time.Hour, For: time.Hour}),

		"kept bucket":  limit.KeepOnChange(limit.TokenBucket{Name: "kept", Rate: 1, Per: time.Hour, Burst: 10}),
		"kept window":  limit.KeepOnChange(limit.FixedWindow{Name: "kept", Limit: 10, Window: time.Hour}),
		"kept sliding": limit.KeepOnChange(limit.SlidingWindow{Name: "kept", Limit: 10, Window: time.Hour}),
	} {
		for with, policies := range map[string][]limit.Policy{"alone": {p}, "in a set": {p, beside}} {
			t.Run(name+"/"+with, func(t *testing.T) {
				t.Parallel()
				prefix := redistest.Prefix(t)
				l := must(limit.New(storetest.At(t, srv.Client(t), prefix), "n", policies, closed(time.Minute)))(t)
				banned, cost := name == "ban", int64(4)
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

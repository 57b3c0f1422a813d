package limit_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// BenchmarkTake measures a decision beside the floor, which is EVALSHA of
// "return 1" through the same client: compare within one run. script-µs is
// the script's own time on the server.
func BenchmarkTake(b *testing.B) {
	srv := redistest.NewStandalone(b)
	admin, rdb := srv.Admin(b), srv.Client(b, func(o *redis.Options) {
		o.ContextTimeoutEnabled = true
		o.PoolSize = 64
	})
	sha := must(admin.ScriptLoad(b.Context(), "return 1").Result())(b)
	floor := func(ctx context.Context) error { return rdb.EvalSha(ctx, sha, []string{"neap:floor:{s}"}, "1").Err() }

	contestants := []struct {
		name     string
		policies []limit.Policy
	}{
		{"bucket/admitted", []limit.Policy{limit.TokenBucket{Rate: 100, Per: time.Second, Burst: 1e9}}},
		{"bucket/denied", []limit.Policy{limit.TokenBucket{Rate: 1, Per: time.Hour}}},
		{"bucket3/admitted", []limit.Policy{limit.TokenBucket{Rate: 3, Per: time.Second, Burst: 1e9}}},
		{"fast/admitted", []limit.Policy{limit.TokenBucket{Rate: 5000, Per: time.Second, Burst: 1e9}}},
		{"fast/denied", []limit.Policy{limit.TokenBucket{Rate: 7777, Per: time.Second, Burst: 1}}},
		{"window/admitted", []limit.Policy{limit.FixedWindow{Limit: 1e9, Window: time.Hour}}},
		{"window/denied", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}},
		{"sliding/admitted", []limit.Policy{limit.SlidingWindow{Limit: 1e4, Window: time.Millisecond}}},
		{"sliding/denied", []limit.Policy{limit.SlidingWindow{Limit: 1, Window: time.Hour}}},
		{"log/admitted", []limit.Policy{limit.SlidingLog{Limit: 1000, Window: time.Millisecond}}},
		{"log/denied", []limit.Policy{limit.SlidingLog{Limit: 1, Window: time.Hour}}},
		{"set2/admitted", []limit.Policy{
			limit.TokenBucket{Rate: 100, Per: time.Second, Burst: 1e9}, limit.FixedWindow{Limit: 1e9, Window: time.Hour},
		}},
	}
	for _, goroutines := range []int{1, 16, 256} {
		run := func(name string, call func(context.Context) error) {
			b.Run(fmt.Sprintf("%s/%d", name, goroutines), func(b *testing.B) {
				if err := call(b.Context()); err != nil {
					b.Fatal(err)
				}
				redistest.ResetStats(b, admin)
				b.ReportAllocs()
				if goroutines == 1 {
					for b.Loop() {
						if err := call(b.Context()); err != nil {
							b.Fatal(err)
						}
					}
				} else {
					b.SetParallelism(goroutines / 2)
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							if err := call(b.Context()); err != nil {
								b.Errorf("a call: got %v, want no error", err)
								return
							}
						}
					})
				}
				b.StopTimer()
				s := redistest.CommandStats(b, admin)["evalsha"]
				b.ReportMetric(float64(s.Usec)/float64(s.Calls), "script-µs")
			})
		}
		run("floor", floor)
		for _, c := range contestants {
			l := must(limit.New(rdb, "bench", c.policies, closed(5*time.Second)))(b)
			run(c.name, func(ctx context.Context) error {
				_, err := l.Take(ctx, "ip=192.0.2.1")
				return err
			})
		}
	}
}

// BenchmarkDegraded measures decisions while the breaker is open. None of them asks
// Redis, except one call every quarter of a second.
func BenchmarkDegraded(b *testing.B) {
	for _, mode := range modes {
		b.Run(mode.String(), func(b *testing.B) {
			bucket := limit.TokenBucket{Rate: 100, Per: time.Second, Burst: 1e9}
			l := must(limit.New(leaking{}, "bench", []limit.Policy{bucket}, &limit.Options{Fail: mode}))(b)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Take(b.Context(), "ip=192.0.2.1"); (err != nil) != (mode == store.FailClosed) {
					b.Fatalf("Fail is %v: got the error %v, want one only under FailClosed", mode, err)
				}
			}
			if !l.Stats().Open {
				b.Error("after failures alone: got a closed breaker, want it open")
			}
		})
	}
}

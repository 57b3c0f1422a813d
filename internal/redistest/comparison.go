package redistest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Comparison is what benchmarks ask of one server: calls of the library's, beside
// what the same client would do without it.
type Comparison struct {
	Admin *redis.Client
	Plain string // the command, in lower case, of the calls that run no script
	calls []comparedCall
}

type comparedCall struct {
	name string
	do   func(ctx context.Context) error
}

// Add has one more call be made.
func (c *Comparison) Add(name string, do func(ctx context.Context) error) {
	c.calls = append(c.calls, comparedCall{name, do})
}

// Load has the server know a script, and returns its SHA.
func (c *Comparison) Load(b *testing.B, source string) string {
	b.Helper()
	sha, err := c.Admin.ScriptLoad(b.Context(), source).Result()
	if err != nil {
		b.Fatal(err)
	}
	return sha
}

// Measure reports what each call costs, in time, allocations and the server's
// time: script-µs is that of all scripts, or commands, of one.
func (c *Comparison) Measure(b *testing.B) {
	b.Helper()
	for _, call := range c.calls {
		b.Run(call.name, func(b *testing.B) {
			ResetStats(b, c.Admin)
			b.ReportAllocs()
			for b.Loop() {
				if err := call.do(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			stats := CommandStats(b, c.Admin)
			what := stats["evalsha"]
			if what.Calls == 0 {
				what = stats[c.Plain]
			}
			b.ReportMetric(float64(what.Usec)/float64(b.N), "script-µs/op")
			b.ReportMetric(float64(what.Calls)/float64(b.N), "trips/op")
		})
	}
}

// Beside has all calls made in turn, in short rounds, and reports a figure of the
// throughput of some, by their unit, and of that of one: the median of the rounds.
func (c *Comparison) Beside(b *testing.B, one string, figure func(of, one float64) float64, units map[string]string) {
	b.Helper()
	const slice = 100 * time.Millisecond
	for _, goroutines := range []int{1, 16} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			figures := map[string][]float64{}
			for b.Loop() {
				rates := map[string]float64{}
				for _, call := range c.calls {
					rates[call.name] = rate(b, call, goroutines, slice)
				}
				for unit, name := range units {
					figures[unit] = append(figures[unit], figure(rates[name], rates[one]))
				}
			}
			b.ReportMetric(0, "ns/op")
			for unit, all := range figures {
				slices.Sort(all)
				b.ReportMetric(all[len(all)/2], unit)
			}
		})
	}
}

// rate is how many times a second so many goroutines do it.
func rate(b *testing.B, call comparedCall, goroutines int, d time.Duration) float64 {
	b.Helper()
	var n atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for range goroutines {
		all.Go(func() {
			for time.Since(began) < d {
				if err := call.do(b.Context()); err != nil {
					b.Error(err)
					return
				}
				n.Add(1)
			}
		})
	}
	all.Wait()
	return float64(n.Load()) / time.Since(began).Seconds()
}

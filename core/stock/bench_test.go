package stock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/redistest"
)

// course is what the benchmarks ask: a Stock, beside what the same client would
// do without one.
type course struct {
	admin, rdb *redis.Client
	calls      []call
}

type call struct {
	name string
	do   func(ctx context.Context) error
}

const (
	decrCall  = "DECR"
	floorCall = "EVALSHA return 1"
	decrSHA   = "EVALSHA return DECR"
	atOnceOne = "reserve at once"
	leased    = "reserve and confirm"
	refusal   = "sold out"
	cancels   = "reserve at once and cancel"
)

func newCourse(b *testing.B) *course {
	b.Helper()
	srv := redistest.NewStandalone(b)
	patient := func(o *redis.Options) { o.ContextTimeoutEnabled, o.PoolSize = true, 64 }
	c := &course{admin: srv.Admin(b), rdb: srv.Admin(b, patient)} // neap's user may not DECR
	load := func(source string) string {
		sha, err := c.admin.ScriptLoad(b.Context(), source).Result()
		if err != nil {
			b.Fatal(err)
		}
		return sha
	}
	prefix := redistest.Prefix(b)
	key := prefix + ":plain"
	if err := c.admin.Set(b.Context(), key, stock.MaxUnits, time.Hour).Err(); err != nil {
		b.Fatal(err)
	}
	s := newStock(b, c.rdb, prefix, nil)
	if err := s.Warm(b.Context()); err != nil {
		b.Fatal(err)
	}
	for _, item := range []string{atOnceOne, leased, cancels} {
		open(b, s, item, stock.MaxUnits)
	}
	open(b, s, refusal, 1)
	reserve(b, s, refusal, "ann", "1", atOnce)
	one, decr := load("return 1"), load("return redis.call('DECR', KEYS[1])")
	var last atomic.Int64
	take := func(item string, opts *stock.ReserveOptions) (*stock.Reservation, error) {
		buyer := strconv.FormatInt(last.Add(1), 10)
		return s.Reserve(b.Context(), item, buyer, buyer, opts)
	}
	c.calls = []call{
		{decrCall, func(ctx context.Context) error { return c.rdb.Decr(ctx, key).Err() }},
		{floorCall, func(ctx context.Context) error { return c.rdb.EvalSha(ctx, one, []string{key}).Err() }},
		{decrSHA, func(ctx context.Context) error { return c.rdb.EvalSha(ctx, decr, []string{key}).Err() }},
		{atOnceOne, func(context.Context) error {
			_, err := take(atOnceOne, atOnce)
			return err
		}},
		{refusal, func(context.Context) error {
			if _, err := take(refusal, atOnce); !errors.Is(err, stock.ErrSoldOut) {
				return fmt.Errorf("not sold out: %w", err)
			}
			return nil
		}},
		{leased, func(ctx context.Context) error {
			r, err := take(leased, nil)
			if err != nil {
				return err
			}
			return r.Confirm(ctx)
		}},
		{cancels, func(ctx context.Context) error {
			r, err := take(cancels, atOnce)
			if err != nil {
				return err
			}
			return r.Cancel(ctx)
		}},
	}
	return c
}

// BenchmarkStock measures what a Stock costs, in time, allocations and the
// server's time: script-µs is that of all scripts or commands of one.
func BenchmarkStock(b *testing.B) {
	c := newCourse(b)
	for _, call := range c.calls {
		b.Run(call.name, func(b *testing.B) {
			redistest.ResetStats(b, c.admin)
			b.ReportAllocs()
			for b.Loop() {
				if err := call.do(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			stats := redistest.CommandStats(b, c.admin)
			what := stats["evalsha"]
			if what.Calls == 0 {
				what = stats["decr"]
			}
			b.ReportMetric(float64(what.Usec)/float64(b.N), "script-µs/op")
			b.ReportMetric(float64(what.Calls)/float64(b.N), "trips/op")
		})
	}
}

// BenchmarkBesideDECR has all of them ask in turn, in short rounds, and reports
// the throughput of each as a part of that of DECR: the median of the rounds.
func BenchmarkBesideDECR(b *testing.B) {
	const slice = 100 * time.Millisecond
	c := newCourse(b)
	for _, goroutines := range []int{1, 16} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			ratios := map[string][]float64{}
			for b.Loop() {
				rates := map[string]float64{}
				for _, call := range c.calls {
					rates[call.name] = rate(b, call, goroutines, slice)
				}
				for name, rate := range rates {
					ratios[name] = append(ratios[name], rate/rates[decrCall])
				}
			}
			b.ReportMetric(0, "ns/op")
			for unit, name := range map[string]string{
				"of-DECR/return-1": floorCall, "of-DECR/script-DECR": decrSHA, "of-DECR/at-once": atOnceOne,
				"of-DECR/sold-out": refusal, "of-DECR/confirmed": leased,
			} {
				slices.Sort(ratios[name])
				b.ReportMetric(ratios[name][len(ratios[name])/2], unit)
			}
		})
	}
}

// rate is how many times a second so many goroutines do it.
func rate(b *testing.B, c call, goroutines int, d time.Duration) float64 {
	b.Helper()
	var n atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range goroutines {
		wg.Go(func() {
			for time.Since(began) < d {
				if err := c.do(b.Context()); err != nil {
					b.Error(err)
					return
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(n.Load()) / time.Since(began).Seconds()
}

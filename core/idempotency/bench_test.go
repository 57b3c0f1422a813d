package idempotency_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

// course is what the benchmarks ask: a guard, beside what the same client would
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
	floorCall = "EVALSHA return 1"
	getCall   = "GET"
	scriptGET = "EVALSHA return GET" // the least that a script can do to replay
	first     = "begin and complete"
	replay    = "replay"
	openSeal  = "replay, sealed"
)

func newCourse(b *testing.B) *course {
	b.Helper()
	srv := redistest.NewStandalone(b)
	c := &course{admin: srv.Admin(b), rdb: srv.Client(b, func(o *redis.Options) {
		o.ContextTimeoutEnabled = true
		o.PoolSize = 64
	})}
	prefix, result := redistest.Prefix(b), bytes.Repeat([]byte("0123456789abcdef"), 64)
	g := guard(b, c.rdb, prefix, nil)
	sealed := guard(b, c.rdb, prefix, &idempotency.Options{Keys: []idempotency.Key{newer}})
	sha, err := c.admin.ScriptLoad(b.Context(), "return 1").Result()
	if err != nil {
		b.Fatal(err)
	}
	shaGET, err := c.admin.ScriptLoad(b.Context(), "return redis.call('GET', KEYS[1])").Result()
	if err != nil {
		b.Fatal(err)
	}
	plain := prefix + ":plain"
	store(b, c.admin, plain, string(result))
	for key, g := range map[string]*idempotency.Guard{"plain": g, "sealed": sealed} {
		if err := begin(b, g, key, digest).Complete(b.Context(), result); err != nil {
			b.Fatal(err)
		}
	}
	replay1 := func(g *idempotency.Guard, key string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, got, err := g.Begin(ctx, key, digest)
			if err == nil && len(got) != len(result) {
				err = fmt.Errorf("a result of %d bytes", len(got))
			}
			return err
		}
	}
	var last atomic.Int64
	c.calls = []call{
		{floorCall, func(ctx context.Context) error { return c.rdb.EvalSha(ctx, sha, []string{plain}, "1").Err() }},
		{getCall, func(ctx context.Context) error { return c.rdb.Get(ctx, plain).Err() }},
		{scriptGET, func(ctx context.Context) error { return c.rdb.EvalSha(ctx, shaGET, []string{plain}).Err() }},
		{first, func(ctx context.Context) error {
			claim, _, err := g.Begin(ctx, "first-"+strconv.FormatInt(last.Add(1), 10), digest)
			if err != nil {
				return err
			}
			return claim.Complete(ctx, result)
		}},
		{replay, replay1(g, "plain")},
		{openSeal, replay1(sealed, "sealed")},
	}
	return c
}

// BenchmarkGuard measures what a guard costs, in time, allocations and the
// server's time: script-µs is that of all scripts or commands of one.
func BenchmarkGuard(b *testing.B) {
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
				what = stats["get"]
			}
			b.ReportMetric(float64(what.Usec)/float64(b.N), "script-µs/op")
			b.ReportMetric(float64(what.Calls)/float64(b.N), "trips/op")
		})
	}
}

// BenchmarkBesideGET has all of them ask in turn, in short rounds, and reports
// how many GETs of the same bytes each is worth: the median of the rounds.
func BenchmarkBesideGET(b *testing.B) {
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
					ratios[name] = append(ratios[name], rates[getCall]/rate)
				}
			}
			b.ReportMetric(0, "ns/op")
			for unit, name := range map[string]string{
				"GETs/return-1": floorCall, "GETs/script-GET": scriptGET, "GETs/first": first, "GETs/replay": replay, "GETs/sealed": openSeal,
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

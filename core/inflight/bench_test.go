package inflight

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// BenchmarkSlot measures a slot that is taken and given back, which is two calls, and a
// slot that is denied. The floor makes two calls and one.
func BenchmarkSlot(b *testing.B) {
	srv := redistest.NewStandalone(b)
	rdb := srv.Client(b, func(o *redis.Options) {
		o.ContextTimeoutEnabled = true
		o.PoolSize = 64
	})
	ctx := b.Context()
	one := script.New("one.lua", "return 1")
	d := ask.NewDecider(storetest.At(b, rdb, "neap"), 5*time.Second)
	floor := func() {
		if _, err := d.Run(ctx, one, []string{"neap:floor:{s}"}); err != nil {
			b.Fatal(err)
		}
	}
	c := must(New(rdb, "bench", 100, &Options{Budget: 5 * time.Second, Fail: store.FailClosed}))(b)
	slot := func(subject string) *Slot {
		s, err := c.Try(ctx, subject)
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	for range 100 {
		slot("full")
	}
	for _, run := range []struct {
		name string
		call func()
	}{
		{"floor", floor},
		{"floor twice", func() { floor(); floor() }},
		{"denied", func() { slot("full") }},
		{"acquired and released", func() {
			if err := slot("s").Release(ctx); err != nil {
				b.Fatal(err)
			}
		}},
	} {
		b.Run(run.name, func(b *testing.B) {
			run.call()
			redistest.ResetStats(b, srv.Admin(b))
			b.ReportAllocs()
			for b.Loop() {
				run.call()
			}
			s := redistest.CommandStats(b, srv.Admin(b))["evalsha"]
			b.ReportMetric(float64(s.Usec)/float64(s.Calls), "script-µs/call")
		})
	}
}

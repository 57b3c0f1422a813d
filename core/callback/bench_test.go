package callback_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

// BenchmarkDelivery answers deliveries without a network in between, and reports the CPU
// time of the server for one.
func BenchmarkDelivery(b *testing.B) {
	srv := redistest.NewStandalone(b)
	admin := srv.Admin(b)
	rdb := srv.Client(b, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	g := guard(b, rdb, srv.Prefix(b), idempotency.Options{})
	if err := g.Warm(b.Context()); err != nil {
		b.Fatal(err)
	}
	serial := 0
	again := func() string { return alipayForm }
	first := func() string {
		serial++
		return fmt.Sprint("notify_id=f", serial, "&out_trade_no=o1&trade_status=TRADE_SUCCESS&total_amount=1.00")
	}
	for _, c := range []struct {
		name string
		form func() string
		sign string
		want int
	}{{"unverified", again, "", 401}, {"first", first, "ok", 200}, {"again", again, "ok", 200}} {
		b.Run(c.name, func(b *testing.B) {
			h := endpoint(b, callback.Alipay(), g, &shop{}, callback.Options{})
			deliver(h, c.form(), signature, c.sign)
			redistest.ResetStats(b, admin)
			b.ReportAllocs()
			for b.Loop() {
				if got := deliver(h, c.form(), signature, c.sign); got.status != c.want {
					b.Fatalf("got %+v, want %d", got, c.want)
				}
			}
			b.ReportMetric(float64(redistest.CommandStats(b, admin)["evalsha"].Usec)/float64(b.N), "server-µs/op")
		})
	}
}

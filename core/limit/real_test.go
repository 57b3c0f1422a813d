package limit_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestExactUnderContention has 64 goroutines on 8 clients share one key.
func TestExactUnderContention(t *testing.T) {
	t.Parallel()
	const most = 400
	hour := []limit.Policy{
		limit.TokenBucket{Rate: most, Per: time.Hour},
		limit.FixedWindow{Limit: most, Window: time.Hour},
		limit.SlidingWindow{Limit: most, Window: time.Hour},
		limit.SlidingLog{Limit: most, Window: time.Hour},
	}
	for _, policies := range setsOf(hour) {
		t.Run(policies[len(policies)-1].PolicyName()+fmt.Sprint(len(policies)), func(t *testing.T) {
			t.Parallel()
			redistest.EachReal(t, func(t *testing.T, connect func() redis.UniversalClient, prefix string) {
				admitted, began, ended := contend(t, connect, prefix, policies, 64*8)
				refilled := int64(0)
				if _, ok := policies[0].(limit.TokenBucket); ok && len(policies) == 1 {
					refilled = int64(ended.Sub(began)/(time.Hour/most)) + 1
				}
				if admitted < most || admitted > most+refilled {
					t.Errorf("got %d admitted, want %d (and %d refilled)", admitted, most, refilled)
				}
			})
		})
	}
	for _, p := range []limit.TokenBucket{
		{Rate: 500, Per: time.Second, Burst: 100},
		{Rate: 1100, Per: time.Second, Burst: 100},
	} {
		t.Run(p.PolicyName(), func(t *testing.T) {
			t.Parallel()
			redistest.EachReal(t, func(t *testing.T, connect func() redis.UniversalClient, prefix string) {
				admitted, began, ended := contend(t, connect, prefix, []limit.Policy{p}, 64*25)
				tick := time.Millisecond
				most := p.Burst + int64(float64(p.Rate)*(ended.Sub(began)+tick).Seconds())
				if admitted < p.Burst || admitted > most { // a slow machine may ask for fewer than are refilled
					t.Errorf("got %d of %d admitted in %v, want from %d to %d",
						admitted, 64*25, ended.Sub(began), p.Burst, most)
				}
			})
		})
	}
}

// contend makes attempts from 64 goroutines on 8 clients. It counts what was admitted
// between two readings of the server's clock.
func contend(
	t *testing.T, connect func() redis.UniversalClient, prefix string, policies []limit.Policy, attempts int,
) (admitted int64, began, ended time.Time) {
	t.Helper()
	limiters := make([]*limit.Limiter, 8)
	var clock redis.UniversalClient
	for i := range limiters {
		clock = connect()
		limiters[i] = must(limit.New(storetest.At(t, clock, prefix), "contend", policies, closed(patience)))(t)
	}
	began = redistest.Time(t, clock)
	var count atomic.Int64
	var wg sync.WaitGroup
	for g := range 64 {
		wg.Go(func() {
			for range attempts / 64 {
				d, err := limiters[g%len(limiters)].Take(t.Context(), "one")
				if err != nil {
					t.Errorf("a take by goroutine %d: got %v, want no error", g, err)
					return
				}
				if d.Allowed {
					count.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return count.Load(), began, redistest.Time(t, clock)
}

// behindProxy is a client that goes through a proxy.
type behindProxy struct {
	rdb    redis.UniversalClient
	proxy  *redistest.Proxy
	prefix string
}

func behindProxies(t *testing.T, one *redistest.Server, many *redistest.ClusterServer) map[string]behindProxy {
	t.Helper()
	p, q := one.Proxy(t), many.Proxy(t)
	return map[string]behindProxy{
		"standalone": {one.Client(t, func(o *redis.Options) { o.Dialer = p.Dial }), p, one.Prefix(t)},
		"cluster":    {many.Client(t, func(o *redis.ClusterOptions) { o.Dialer = q.Dial }), q, many.Prefix(t)},
	}
}

// TestLostReplyTakesOnce loses the reply of every decision after the server made it. Each
// decision took its permit exactly once, with the client's default options.
func TestLostReplyTakesOnce(t *testing.T) {
	t.Parallel()
	for name, c := range behindProxies(t, redistest.Standalone(t), redistest.Cluster(t)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, policies := range append(each(limit.Steady), limit.OneOfEach) {
				l := must(limit.New(storetest.At(t, c.rdb, c.prefix), "lost", policies, closed(patience)))(t)
				subject := fmt.Sprint(len(policies), policies[0].PolicyName())
				before := must(l.TakeN(t.Context(), subject, 1))(t) // tells the server the script
				c.proxy.Lose(redistest.EOF, 3, "evalsha", "eval")
				for range 3 {
					if d, err := l.Take(t.Context(), subject); !errors.Is(err, script.ErrMaybeExecuted) {
						t.Errorf("%s: a take whose reply was lost: got %+v, %v, want ErrMaybeExecuted",
							subject, d, err)
					}
				}
				c.proxy.Lose(redistest.EOF, 0)
				after, err := l.Peek(t.Context(), subject)
				if err != nil || first(after).Remaining != first(before).Remaining-3 {
					t.Errorf("%s: three lost decisions took %d permits (%v), want 3",
						subject, first(before).Remaining-first(after).Remaining, err)
				}
			}
		})
	}
}

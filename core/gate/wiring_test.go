package gate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/stock"
)

// TestCountWithPrepaid: Count and Prepaid together are refused at wiring.
func TestCountWithPrepaid(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { rdb.Close() })
	prepaid, err := limit.New(rdb, "n", []limit.Policy{limit.FixedWindow{Limit: 10, Window: time.Hour}},
		&limit.Options{Prepaid: limit.Prepaid{Most: 10}})
	if err != nil {
		t.Fatal(err)
	}
	opts := gate.RateLimitOptions{Count: gate.OnlyFailures}
	if got := fmt.Sprint(panics(t, func() { gate.RateLimit(prepaid, everyone, &opts) })); !strings.Contains(got, "RateLimitOptions.Count") || !strings.Contains(got, "Prepaid") {
		t.Errorf("Count with Prepaid: got the panic %q, want one that names both", got)
	}
}

// A zero limiter, locker, guard or stock is refused when the server is wired, and not
// with a 503 for each request.
func TestGatesOfZeroValues(t *testing.T) {
	t.Parallel()
	for of, wire := range map[string]func(){
		"limit: a nil or zero Limiter":     func() { gate.RateLimit(new(limit.Limiter), everyone, nil) },
		"inflight: a nil or zero Limiter":  func() { gate.Concurrency(new(inflight.Limiter), everyone, nil) },
		"lock: a nil or zero Locker":       func() { gate.Exclusive(new(lock.Locker), everyone, nil) },
		"idempotency: a nil or zero Guard": func() { gate.Idempotent(new(idempotency.Guard), everyone, nil) },
		"stock: a nil or zero Stock":       func() { gate.Reserve(new(stock.Stock), everyone, everyone, nil) },
	} {
		if err, ok := panics(t, wire).(error); !ok || !strings.Contains(err.Error(), of+": make one with New") {
			t.Errorf("%s: got the panic %v, want one that says how to make one", of, err)
		}
	}
}

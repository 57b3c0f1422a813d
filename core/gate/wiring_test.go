package gate_test

import (
	"strings"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/stock"
)

// What nothing made is refused when the server is wired, and not by a 503 to each
// request.
func TestGatesOfZeroValues(t *testing.T) {
	t.Parallel()
	for of, wire := range map[string]func(){
		"Limiter":     func() { gate.RateLimit(new(limit.Limiter), everyone, nil) },
		"Concurrency": func() { gate.Concurrency(new(limit.Concurrency), everyone, nil) },
		"Locker":      func() { gate.Exclusive(new(lock.Locker), everyone, nil) },
		"Guard":       func() { gate.Idempotent(new(idempotency.Guard), everyone, nil) },
		"Stock":       func() { gate.Reserve(new(stock.Stock), everyone, everyone, nil) },
	} {
		if err, ok := panics(t, wire).(error); !ok || !strings.Contains(err.Error(), "a nil or zero "+of+": make one with New") {
			t.Errorf("a gate of a zero %s: got the panic %v, want one that says how to make one", of, err)
		}
	}
}

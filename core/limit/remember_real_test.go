package limit_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// falseDenials counts, in at least so many short windows on a real server, denials that
// were remembered longer than the server itself would deny. A busy machine recalls few denials in windows this short, so it
// goes on until there are 20.
func falseDenials(t *testing.T, windows int) (wrong, recalled int) {
	t.Helper()
	rdb := redistest.Standalone(t).Client(t)
	n := new(redistest.CountingHook)
	own := redistest.Standalone(t).Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	own.AddHook(n)
	prefix := redistest.Prefix(t)
	limiter := func(rdb *redis.Client, remember time.Duration) *limit.Limiter {
		return must(limit.New(storetest.At(t, rdb, prefix), "n", []limit.Policy{limit.FixedWindow{Limit: 1, Window: 10 * time.Millisecond}},
			&limit.Options{Budget: time.Minute, Fail: store.FailClosed, RememberDenials: remember}))(t)
	}
	remembers, asks := limiter(own, time.Second), limiter(rdb, 0)
	began := time.Now()
	for granted := 0; granted < windows || recalled < 20; {
		free := must(asks.Peek(t.Context(), "s"))(t)
		before := n.Scripts.Load()
		d, err := remembers.Take(t.Context(), "s")
		switch {
		case err != nil:
			t.Fatal(err)
		case time.Since(began) > 5*time.Minute:
			t.Fatalf("got %d of %d windows and %d of 20 remembered denials in 5 minutes, want all", granted, windows, recalled)
		case d.Allowed:
			granted++
		case n.Scripts.Load() == before:
			recalled++
			if free.Allowed {
				wrong++
			}
		}
	}
	return wrong, recalled
}

// TestDenialsEndWithTheServersMillisecond, because a server reports times in whole
// milliseconds.
func TestDenialsEndWithTheServersMillisecond(t *testing.T) {
	t.Parallel()
	if wrong, recalled := falseDenials(t, 100); wrong > 0 {
		t.Errorf("remembered denials that the server would not make: got %d of %d, want none", wrong, recalled)
	}
}

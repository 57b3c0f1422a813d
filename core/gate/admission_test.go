package gate_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// used is how many permits everyone has taken from a limiter with one policy.
func used(t *testing.T, l *limit.Limiter) int64 {
	t.Helper()
	d, err := l.Peek(context.Background(), "everyone")
	if err != nil {
		t.Fatal(err)
	}
	return d.Limit - d.Remaining
}

func answered(status int) *gate.Reply { return &gate.Reply{Status: status} }

func TestOnlyFailures(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{101: false, 200: false, 302: false, 399: false, 400: true, 401: true, 429: true, 500: true} {
		if gate.OnlyFailures(status) != want {
			t.Errorf("OnlyFailures(%d): got %t, want %t", status, !want, want)
		}
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply *gate.Reply
		gone  bool
		want  int64
	}{
		"success":               {answered(200), false, 0},
		"redirect":              {answered(303), false, 0},
		"failure":               {answered(401), false, 1},
		"fault":                 {answered(500), false, 1},
		"not seen":              {nil, false, 1},
		"taken over":            {answered(0), false, 1},
		"switching protocols":   {answered(101), false, 0},
		"gone, gave up":         {answered(200), true, 1},
		"gone, success":         {&gate.Reply{Status: 200, Partial: true}, true, 0}, // its body is not captured
		"gone, nothing to send": {answered(204), true, 0},
		"gone, redirect":        {answered(303), true, 0},
		"gone, failure":         {answered(401), true, 1},
	} {
		ctx, end := context.WithCancel(t.Context())
		l := hourly(t, 3)
		var h hook
		p := gate.RateLimit(l, everyone, &gate.RateLimitOptions{
			Count: func(status int) bool {
				if status == 0 {
					t.Error("Count was called with status 0, want it called only with a status that was sent")
				}
				return gate.OnlyFailures(status)
			},
			OnError: h.hear,
		}).Enter(&request{ctx: ctx})
		if got := used(t, l); got != 1 {
			t.Errorf("%s: got %d used while the handler runs, want 1", name, got)
		}
		if p.Capture != 0 {
			t.Errorf("%s: got %d bytes captured, want 0", name, p.Capture)
		}
		if c.gone {
			end()
		}
		p.Leave(c.reply)
		if got, told := used(t, l), h.take(); got != c.want || told != nil {
			t.Errorf("%s: got %d used and OnError told %v, want %d and nothing", name, got, told, c.want)
		}
		end()
	}
}

// A request that takes no permits, or that always counts, needs no Leave.
func TestNoLeaveWithoutPermitsToGiveBack(t *testing.T) {
	t.Parallel()
	l := hourly(t, 1)
	options := &gate.RateLimitOptions{
		Count: gate.OnlyFailures,
		Skip:  func(r gate.Request) bool { return r.Path() == "/skip" },
		Cost:  func(r gate.Request) (int64, error) { return int64(len(r.RawQuery())), nil },
	}
	for name, p := range map[string]gate.Pass{
		"no Count": gate.RateLimit(hourly(t, 1), everyone, nil).Enter(&request{}),
		"skipped":  gate.RateLimit(l, everyone, options).Enter(&request{path: "/skip"}),
		"no cost":  gate.RateLimit(l, everyone, options).Enter(&request{}),
		"refused":  gate.RateLimit(l, everyone, options).Enter(&request{query: "22"}),
	} {
		if p.Leave != nil || name != "no Count" && p.Context != nil {
			t.Errorf("%s: got %+v, want no Leave, and a Context only without Count", name, p)
		}
	}
}

// The policies of a plan get back everything that the request cost.
func TestCountRefundsThePlan(t *testing.T) {
	t.Parallel()
	free := hourly(t, 10)
	plan := limit.FixedWindow{Name: "paid", Limit: 100, Window: time.Hour}
	paid, err := free.With(plan)
	if err != nil {
		t.Fatal(err)
	}
	g := gate.RateLimit(free, everyone, &gate.RateLimitOptions{
		Count:    gate.OnlyFailures,
		Policies: func(gate.Request) ([]limit.Policy, error) { return []limit.Policy{plan}, nil },
		Cost:     func(gate.Request) (int64, error) { return 7, nil },
	})
	p := g.Enter(&request{})
	if got := used(t, paid); got != 7 {
		t.Errorf("while the handler runs: got %d used of the paid limit, want 7", got)
	}
	p.Leave(answered(200))
	if got := used(t, paid); got != 0 {
		t.Errorf("after the refund: got %d used of the paid limit, want 0", got)
	}
	g.Enter(&request{}).Leave(answered(401))
	if paid, free := used(t, paid), used(t, free); paid != 7 || free != 0 {
		t.Errorf("after a failure: got %d used of the paid limit and %d of the free one, want 7 and 0", paid, free)
	}
}

// severed is a client whose server can become unreachable.
type severed struct {
	script.Client
	gone atomic.Bool
}

func (s *severed) Process(ctx context.Context, cmd redis.Cmder) error {
	if s.gone.Load() {
		return deadRedis{errNoPerm}.Process(ctx, cmd)
	}
	return s.Client.Process(ctx, cmd)
}

// severable is a client for a Redis of its own.
func severable(t testing.TB) *severed {
	t.Helper()
	_, rdb := redistest.Miniredis(t)
	return &severed{Client: rdb}
}

// mortal is a limiter on a Redis that becomes unreachable on demand.
func mortal(t *testing.T, n int64, fail store.FailMode) (*limit.Limiter, *severed) {
	t.Helper()
	s := severable(t)
	l, err := limit.New(s, "test", []limit.Policy{limit.FixedWindow{Name: "w", Limit: n, Window: time.Hour}},
		&limit.Options{Budget: time.Minute, Fail: fail})
	if err != nil {
		t.Fatal(err)
	}
	return l, s
}

// If a limiter decided in process, the permit is given back there, even if Redis is back.
func TestRefundOfADegradedDecision(t *testing.T) {
	t.Parallel()
	l, s := mortal(t, 1, store.FailLocal)
	var h hook
	g := gate.RateLimit(l, everyone, &gate.RateLimitOptions{Count: gate.OnlyFailures, OnError: h.hear})
	s.gone.Store(true)
	for range 3 {
		p := g.Enter(&request{})
		if status(p) != 200 || !errors.Is(h.take(), script.ErrConfiguration) {
			t.Fatalf("without Redis: got %d, want 200 and the hook told of %v", status(p), script.ErrConfiguration)
		}
		p.Leave(answered(200))
		if err := h.take(); err != nil {
			t.Errorf("the hook was told %v of the refund, want nothing", err)
		}
	}
	open, s := mortal(t, 1, store.FailOpen)
	s.gone.Store(true)
	g = gate.RateLimit(open, everyone, &gate.RateLimitOptions{Count: gate.OnlyFailures, OnError: h.hear})
	for range 3 {
		p := g.Enter(&request{})
		_ = h.take()
		if p.Leave != nil {
			p.Leave(answered(200))
		}
		if err := h.take(); status(p) != 200 || err != nil {
			t.Errorf("open, without Redis: got %d, and the hook told %v of a refund of nothing, "+
				"want 200 and no error", status(p), err)
		}
	}
	if got := used(t, open); got != 0 {
		t.Errorf("after requests that Redis did not count: got %d used, want 0", got)
	}
}

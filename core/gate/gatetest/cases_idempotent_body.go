package gatetest

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/script"
)

// idempotentBodies: the handler reads the body that the gate has read. The framing of a
// body makes no difference. A body that is too large claims nothing.
func idempotentBodies(t *testing.T, d Driver) {
	const most = 100_000
	g := newGuard(t, d, idempotency.Options{})
	var runs atomic.Int64
	address := d.Serve(t, App{Routes: []Route{guarded(g, &gate.IdempotentOptions{MaxBody: most}, func(x Exchange) error {
		runs.Add(1)
		body, err := x.Body()
		return errors.Join(err, say(200, string(body))(x))
	})}})
	lines := []string{"Content-Type: " + plain}
	long := strings.Repeat("x", most+1)
	for range 2 {
		for _, a := range []answer{
			dial(t, address).post("/orders", long, keyed("1")...), dial(t, address).postChunked("/orders", long, keyed("1")...),
		} {
			a.isProblem(t, 413, "", "The body of the request is too large")
		}
	}
	if s := g.Stats(); s.Begun != 0 {
		t.Errorf("after bodies that are too large: got stats %+v, want none begun", s)
	}
	for i, size := range []int{0, 1, 1000, most} {
		body := strings.Repeat("x", size)
		key := keyed(string(rune('1' + i)))
		dial(t, address).postChunked("/orders", body, key...).is(t, 200, body, lines...)
		dial(t, address).post("/orders", body, key...).is(t, 200, body, append(lines, marker)...)
		dial(t, address).postChunked("/orders", body, key...).is(t, 200, body, append(lines, marker)...)
	}
	if n := runs.Load(); n != 4 {
		t.Errorf("got %d runs, want 4", n)
	}
}

// idempotentBroken: a request whose body does not arrive whole gets a 4xx, if any answer,
// and claims nothing.
func idempotentBroken(t *testing.T, d Driver) {
	g := newGuard(t, d, idempotency.Options{})
	address := d.Serve(t, App{Routes: []Route{guarded(g, nil, never(t))}})
	for name, raw := range map[string]struct {
		body  string
		lines []string
	}{
		"EndsEarly":       {"only these", []string{"Content-Length: 1000"}},
		"ChunksEndEarly":  {"5\r\nthese\r\n", []string{"Transfer-Encoding: chunked"}},
		"ChunksMalformed": {"5\r\nthese\r\nno chunk\r\n", []string{"Transfer-Encoding: chunked"}},
		"NoLength":        {"tea", []string{"Content-Length: three"}},
	} {
		c := dial(t, address)
		if err := c.write("POST", "/orders", raw.body, keyed("17", raw.lines...)...); err != nil {
			t.Fatal(err)
		}
		_ = c.conn.(*net.TCPConn).CloseWrite()
		a, err := c.read("POST")
		switch {
		case d.BodyFirst && err != nil: // the server has no gate to ask, and may hang up
		case err != nil || a.status < 400 || a.status > 499:
			t.Errorf("%s: got %d %q, %v, want a status of 4xx", name, a.status, a.body, err)
		}
	}
	if s := g.Stats(); s != (idempotency.Stats{}) {
		t.Errorf("after broken bodies: got stats %+v, want all 0", s)
	}
}

// idempotentConsumed: if others have read a body before the gate, that is an error of the
// wiring, and the hook is told. Such a body does not pass for an empty one.
func idempotentConsumed(t *testing.T, d Driver) {
	if d.BodyFirst {
		t.Skip("this framework reads the body before a handler runs")
	}
	g := newGuard(t, d, idempotency.Options{})
	told := make(chan error, 16)
	route := guarded(g, &gate.IdempotentOptions{OnError: func(_ gate.Request, err error) { told <- err }}, never(t))
	route.Around = []Middleware{func(x Exchange, next func() error) error {
		_, err := x.Body()
		return errors.Join(err, next())
	}}
	address := d.Serve(t, App{Routes: []Route{route}})
	buy(t, address).isProblem(t, 500, "", "Internal Server Error")
	if err := next(t, "OnError to be told", told); !errors.Is(err, gate.ErrBodyConsumed) || !errors.Is(err, gate.ErrWiring) {
		t.Errorf("the hook was told %v, want %v", err, gate.ErrBodyConsumed)
	}
	dial(t, address).postChunked("/orders", "tea", keyed("17")...).isProblem(t, 500, "", "Internal Server Error")
	if err := next(t, "OnError to be told", told); !errors.Is(err, gate.ErrBodyConsumed) {
		t.Errorf("for a chunked body the hook was told %v, want %v", err, gate.ErrBodyConsumed)
	}
	if s := g.Stats(); s != (idempotency.Stats{}) {
		t.Errorf("after bodies that were consumed: got stats %+v, want all 0", s)
	}
}

// idempotentInner: a request that a gate further in refuses has not run, and the next one
// may run, whatever the refusal's status is. A limit outside counts each of them.
func idempotentInner(t *testing.T, d Driver) {
	for name, mount := range map[string]func(route *Route, outer, own, inner gate.Gate) []gate.Gate{
		"Apart": func(route *Route, outer, own, inner gate.Gate) []gate.Gate {
			route.Around, route.Gates = []Middleware{wrapping}, []gate.Gate{own, inner}
			return []gate.Gate{outer}
		},
		"Chain": func(route *Route, outer, own, inner gate.Gate) []gate.Gate {
			route.Gates = []gate.Gate{gate.Chain(outer, own, inner)}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuardOf(t, d, idempotency.Reject{}, idempotency.Options{})
			l := newLocker(t, d)
			all, few := perHour(t, "all", 100), perHour(t, "few", 5)
			var runs atomic.Int64
			route := guarded(g, nil, numbered(&runs))
			gates := mount(&route, gate.RateLimit(all, everyone, &gate.RateLimitOptions{Headers: gate.HeadersNone}), route.Gates[0],
				gate.Chain(
					gate.RateLimit(few, everyone, &gate.RateLimitOptions{Headers: gate.HeadersNone}),
					gate.Exclusive(l, everyone, &gate.ExclusiveOptions{Render: func(d gate.Denial) gate.Reply {
						return gate.Reply{Status: 503, Body: []byte("held")}
					}})))
			address := d.Serve(t, App{Gates: gates, Routes: []Route{route}})
			held, err := l.Try(t.Context(), "everyone")
			if err != nil {
				t.Fatal(err)
			}
			defer held.Release(context.Background())
			asked := int64(0)
			ask := func(what, body, key string, status int) {
				t.Helper()
				asked++
				a := dial(t, address).post("/orders", body, keyed(key)...)
				if got := used(t, all); a.status != status || got != asked {
					t.Errorf("%s: got %d %s, and %d used, want %d and %d", what, a.status, a.body, got, status, asked)
				}
			}
			ask("a lock inside is held", "tea", "17", 503)
			ask("and still", "tea", "17", 503)
			if err := held.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			ask("it runs", "tea", "17", 201)
			ask("a replay", "tea", "17", 201)
			ask("another request", "two", "17", 422)
			ask("without a key", "tea", "", 400)
			ask("it runs", "tea", "18", 201)
			ask("it runs", "tea", "19", 201)
			ask("a limit inside is reached", "tea", "20", 429)
			ask("and still", "tea", "20", 429)
			run, err := g.Begin(t.Context(), gate.IdempotencyScope("header:x-account=alice", "POST", "/orders", "20"), "")
			claim := run.Claim
			if claim != nil || !errors.Is(err, idempotency.ErrMismatch) {
				t.Errorf("a request that was refused inside: got the claim %v, %v, want none and %v",
					claim, err, idempotency.ErrMismatch)
			}
			if runs.Load() != 3 || g.Stats().Abandoned != 4 {
				t.Errorf("got %d runs and stats %+v, want 3 runs and 4 abandoned", runs.Load(), g.Stats())
			}
		})
	}
}

// absent is a Redis that becomes unreachable on demand: a dial then fails immediately
// with a timeout, after which no call is tried again.
type absent struct {
	script.Client
	gone atomic.Bool
}

func (a *absent) Process(ctx context.Context, cmd redis.Cmder) error {
	if a.gone.Load() {
		err := &net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded}
		cmd.SetErr(err)
		return err
	}
	return a.Client.Process(ctx, cmd)
}

// idempotentAway: without Redis nothing runs. If Redis becomes unreachable while a
// handler runs, the client gets the answer, and later clients get it when Redis is back.
func idempotentAway(t *testing.T, d Driver) {
	rdb := &absent{Client: d.Redis(t)}
	g, err := idempotency.New(rdb, "gatetest", idempotency.Reject{}, &idempotency.Options{Budget: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 16)
	var runs atomic.Int64
	options := &gate.IdempotentOptions{OnError: func(_ gate.Request, err error) { told <- err }}
	address := d.Serve(t, App{Routes: []Route{guarded(g, options, func(x Exchange) error {
		if claimed(t, x).Key() == scope {
			rdb.gone.Store(true)
		}
		return numbered(&runs)(x)
	})}})
	unavailable := func() {
		t.Helper()
		var fault *script.Error
		if err := next(t, "OnError to be told", told); !errors.As(err, &fault) {
			t.Errorf("the hook was told %v, want a *script.Error", err)
		}
	}
	rdb.gone.Store(true)
	buy(t, address).isProblem(t, 503, "not-begun", "The request was not begun")
	unavailable()
	rdb.gone.Store(false)
	buy(t, address).isRun(t, 1, false)
	unavailable()
	rdb.gone.Store(false)
	await(t, "the answer to be stored", func() bool { return g.Stats().Concluded == 1 })
	for range 2 {
		buy(t, address).isRun(t, 1, true)
	}
	if s := g.Stats(); s.Unconfirmed != 1 || s.Failed != 1 || s.Undoing != 0 || runs.Load() != 1 || len(told) != 0 {
		t.Errorf("got %d runs, stats %+v, and the hook told %d things more, "+
			"want 1 run, 1 unconfirmed, 1 failed, none undoing, and nothing told", runs.Load(), s, len(told))
	}
}

package gatetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
)

// everyone is the same key for all requests.
func everyone(gate.Request) (string, error) { return "everyone", nil }

// used is how many permits everyone has taken from a limiter with one policy.
func used(t testing.TB, l *limit.Limiter) int64 {
	t.Helper()
	d, err := l.Peek(context.Background(), "everyone")
	if err != nil {
		t.Fatal(err)
	}
	return d.Limit - d.Remaining
}

// counting serves /detail behind a limit of n an hour. Only answers for which count is
// true are counted.
func counting(t *testing.T, d Driver, n int64, count func(int) bool, h Handler) (address string, l *limit.Limiter) {
	l = perHour(t, "counting", n)
	return d.Serve(t, App{
		OnError: func(x Exchange, _ error) { _ = say(http.StatusTeapot, "sorry")(x) },
		Routes: []Route{{
			Method: "GET", Pattern: "/detail", Handler: h,
			Gates: []gate.Gate{gate.RateLimit(l, everyone, &gate.RateLimitOptions{Count: count})},
		}},
	}), l
}

// saying is a handler that answers with the status that the client asks for.
func saying(x Exchange) error {
	status, _ := strconv.Atoi(x.Query("status"))
	return say(status, "done")(x)
}

// countFailures: a success is given back before its response ends, so a client that has
// read the response finds a permit. A failure is not given back.
func countFailures(t *testing.T, d Driver) {
	address, l := counting(t, d, 2, gate.OnlyFailures, saying)
	c := dial(t, address)
	for i, ask := range []struct {
		method, status string
		want           int
		used           int64
	}{
		{"GET", "200", 200, 0}, {"HEAD", "204", 204, 0}, {"GET", "302", 302, 0}, {"HEAD", "200", 200, 0},
		{"GET", "401", 401, 1}, {"GET", "200", 200, 1}, {"HEAD", "500", 500, 2},
		{"GET", "200", 429, 2}, {"GET", "401", 429, 2},
	} {
		a := c.do(ask.method, "/detail?status="+ask.status)
		if got := used(t, l); a.status != ask.want || got != ask.used {
			t.Errorf("request %d: got %d, and %d used, want %d and %d", i, a.status, got, ask.want, ask.used)
		}
	}
}

// countUnseen: an outcome that the gate does not see counts.
func countUnseen(t *testing.T, d Driver) {
	none := func(status int) bool {
		if status == 0 {
			t.Error("Count was called with status 0, want it called only with a status that was sent")
		}
		return false
	}
	t.Run("Panic", func(t *testing.T) {
		address, l := counting(t, d, 2, none, func(Exchange) error { panic("gatetest: a handler panics") })
		for i, want := range []int{500, 500, 429} {
			if a := get(t, address, "/detail"); a.status != want {
				t.Errorf("request %d: got %d, want %d", i, a.status, want)
			}
		}
		if got := used(t, l); got != 2 {
			t.Errorf("after two panics: got %d used, want 2", got)
		}
	})
	t.Run("Error", func(t *testing.T) {
		if d.Errors == NoErrors {
			t.Skip("handlers of this framework return no error")
		}
		teapots := func(status int) bool { return status != http.StatusTeapot }
		address, l := counting(t, d, 2, teapots, func(Exchange) error { return errHandler })
		if a := get(t, address, "/detail"); a.status != http.StatusTeapot {
			t.Errorf("got %d, want %d", a.status, http.StatusTeapot)
		}
		want := map[Errors]int64{ErrorsInside: 0, ErrorsOutside: 1}[d.Errors]
		if got := used(t, l); got != want {
			t.Errorf("%d used, want %d", got, want)
		}
	})
	t.Run("Hijack", func(t *testing.T) {
		if !d.Hijack {
			t.Skip("connections of this framework cannot be taken over")
		}
		if d.HijackAnswers {
			t.Skip("this framework answers before a connection is taken over")
		}
		address, l := counting(t, d, 2, none, func(x Exchange) error {
			return x.Hijack(func(conn net.Conn) { _, _ = conn.Write([]byte("HTTP/1.1 299 Mine\r\n\r\n")) })
		})
		if a := get(t, address, "/detail"); a.status != 299 {
			t.Errorf("got %d, want 299", a.status)
		}
		if got := used(t, l); got != 1 {
			t.Errorf("a connection that was taken over: got %d used, want 1", got)
		}
	})
}

// countInFlight: requests count while they run. If many end at the same time, no more
// than the limit are admitted after that.
func countInFlight(t *testing.T, d Driver) {
	const n = 20
	running, end := make(chan struct{}, n), make(chan struct{})
	var once sync.Once
	release := func() { once.Do(func() { close(end) }) }
	t.Cleanup(release)
	address, l := counting(t, d, n, gate.OnlyFailures, func(x Exchange) error {
		if x.Query("status") == "200" {
			running <- struct{}{}
			<-end
		}
		return saying(x)
	})
	statuses := func(target string, n int, while func()) map[int]int {
		got := make([]int, n)
		var wg sync.WaitGroup
		for i := range n {
			c := dial(t, address)
			wg.Go(func() {
				a, err := c.try("GET", target, "")
				if err != nil {
					t.Error(err)
				}
				got[i] = a.status
			})
		}
		while()
		wg.Wait()
		counts := map[int]int{}
		for _, status := range got {
			counts[status]++
		}
		return counts
	}
	slow := statuses("/detail?status=200", n, func() {
		for range n {
			next(t, "the handler to run", running)
		}
		if a := get(t, address, "/detail?status=401"); a.status != 429 {
			t.Errorf("while %d requests are in flight: got %d, want 429", n, a.status)
		}
		release()
	})
	if slow[200] != n || used(t, l) != 0 {
		t.Errorf("got the statuses %v, and %d permits used, want %d times 200, and 0 used", slow, used(t, l), n)
	}
	if got := statuses("/detail?status=401", n+10, func() {}); got[401] != n || got[429] != 10 {
		t.Errorf("after %d successes that ended together: got the statuses %v, want %d times 401 and 10 times 429",
			n, got, n)
	}
}

// countGone: what counts if a request's context has ended before the handler answers. A
// handler that gives up, with an empty 200, has not succeeded. Any other answer is taken
// as it is, and its permit is given back although no client waits.
func countGone(t *testing.T, d Driver) {
	for name, end := range map[string]func(client *client, stop context.CancelFunc){
		"HangsUp":  func(client *client, _ context.CancelFunc) { _ = client.conn.Close() },
		"Deadline": func(_ *client, stop context.CancelFunc) { stop() },
	} {
		for answer, c := range map[string]struct {
			handler Handler
			used    int64
		}{
			"Nothing": {func(Exchange) error { return nil }, 1},
			"Empty":   {func(x Exchange) error { return x.Send(200, "") }, 1},
			"Failure": {say(401, "no"), 1},
			"Panic":   {func(Exchange) error { panic("gatetest: a handler panics") }, 1},
			"Success": {say(200, "nobody listens"), 0},
			"Nobody":  {func(x Exchange) error { return x.Send(204, "") }, 0},
			"Streamed": {func(x Exchange) error {
				return x.Stream(200, func(yield func(string) bool) { yield("nobody listens") })
			}, 0},
		} {
			t.Run(name+"/"+answer, func(t *testing.T) {
				if name == "HangsUp" && !d.Disconnect {
					t.Skip("requests of this framework do not end with their client")
				}
				limited, ended := perHour(t, "counting", 2), watch(t)
				ended.expect(1)
				running := make(chan context.CancelFunc, 1)
				address := d.Serve(t, App{Routes: []Route{{
					Method: "GET", Pattern: "/detail",
					Around: []Middleware{func(x Exchange, next func() error) error {
						ctx, stop := context.WithCancel(context.WithValue(x.Context(), contextKey("stop"), "1"))
						defer stop()
						x.SetContext(context.WithValue(ctx, contextKey("stop"), stop))
						return next()
					}},
					Gates: []gate.Gate{
						pass(gate.Pass{Leave: ended.leave}),
						gate.RateLimit(limited, everyone, &gate.RateLimitOptions{Count: gate.OnlyFailures}),
					},
					Handler: func(x Exchange) error {
						running <- x.Context().Value(contextKey("stop")).(context.CancelFunc)
						<-x.Context().Done()
						return c.handler(x)
					},
				}}})
				client := dial(t, address)
				if err := client.write("GET", "/detail", ""); err != nil {
					t.Fatal(err)
				}
				stop := next(t, "the handler to run", running)
				if got := used(t, limited); got != 1 {
					t.Errorf("while the handler runs: got %d used, want 1", got)
				}
				end(client, stop)
				ended.await(1)
				if got := used(t, limited); got != c.used {
					t.Errorf("%d used, want %d", got, c.used)
				}
			})
		}
	}
}

// countHangUps: clients that hang up one after the other get no further than the limit,
// if the handler then gives up.
func countHangUps(t *testing.T, d Driver) {
	if !d.Disconnect {
		t.Skip("requests of this framework do not end with their client")
	}
	const attempts, admitted = 30, 5
	var running atomic.Int64
	ended := watch(t)
	address := d.Serve(t, App{Routes: []Route{{
		Method: "GET", Pattern: "/detail",
		Gates: []gate.Gate{
			pass(gate.Pass{Leave: ended.leave}),
			gate.RateLimit(perHour(t, "counting", admitted), everyone, &gate.RateLimitOptions{Count: gate.OnlyFailures}),
		},
		Handler: func(x Exchange) error {
			running.Add(1)
			<-x.Context().Done()
			return nil
		},
	}}})
	ended.expect(attempts)
	for i := range attempts {
		before, c := running.Load(), dial(t, address)
		if err := c.write("GET", "/detail", ""); err != nil {
			t.Fatal(err)
		}
		await(t, "the handler, or a refusal", func() bool { return running.Load() > before || len(ended.all()) > i })
		_ = c.conn.Close()
		ended.await(i + 1)
	}
	if n := running.Load(); n != admitted {
		t.Errorf("%d of %d attempts got to the handler, want %d", n, attempts, admitted)
	}
}

// countEndedFurtherIn: a gate further in may end the context of a handler that then
// returns without an answer. For the gates outside this is not an answer either.
func countEndedFurtherIn(t *testing.T, d Driver) {
	const most = 3
	l := newLocker(t, d)
	held := gate.Exclusive(l, gate.ByHeader(order), &gate.ExclusiveOptions{
		OnError: func(_ gate.Request, err error) {
			if !errors.Is(err, lock.ErrLost) {
				t.Errorf("a lock: got %v, want %v", err, lock.ErrLost)
			}
		},
	})
	for name, route := range map[string]func(limited gate.Gate) ([]gate.Gate, []gate.Gate){
		"OneByOne": func(limited gate.Gate) ([]gate.Gate, []gate.Gate) { return []gate.Gate{limited}, []gate.Gate{held} },
		"Chained":  func(limited gate.Gate) ([]gate.Gate, []gate.Gate) { return nil, []gate.Gate{gate.Chain(limited, held)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limited := perHour(t, "counting", most)
			outer, inner := route(gate.RateLimit(limited, everyone, &gate.RateLimitOptions{Count: gate.OnlyFailures}))
			address := d.Serve(t, App{Gates: outer, Routes: []Route{{
				Method: "POST", Pattern: "/exclusive", Gates: inner,
				Handler: func(x Exchange) error {
					lose(t, l, fenced(t, x), x.Query("order"))
					<-x.Context().Done()
					return nil
				},
			}}})
			var all sync.WaitGroup
			for i := range most {
				c, own := dial(t, address), fmt.Sprint(name, i)
				all.Go(func() {
					if a, err := c.try("POST", "/exclusive?order="+own, "", order+": "+own); err != nil || a.status != 200 {
						t.Errorf("got %d, %v, want 200", a.status, err)
					}
				})
			}
			all.Wait()
			if n := used(t, limited); n != most {
				t.Errorf("%d permits are used, want %d", n, most)
			}
		})
	}
}

// countRefusedFurtherIn: a request that a gate further in refuses counts, even if the
// refusal is a 200.
func countRefusedFurtherIn(t *testing.T, d Driver) {
	const flood, admitted = 6, 3
	for name, mount := range map[string]func(outer, inner gate.Gate) App{
		"OneByOne": func(outer, inner gate.Gate) App {
			return App{Gates: []gate.Gate{outer}, Routes: []Route{{Gates: []gate.Gate{inner}}}}
		},
		"Chained": func(outer, inner gate.Gate) App {
			return App{Routes: []Route{{Gates: []gate.Gate{gate.Chain(outer, inner)}}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := perHour(t, "counting", admitted)
			app := mount(
				gate.RateLimit(l, everyone, &gate.RateLimitOptions{Count: gate.OnlyFailures}),
				gate.RateLimit(perHour(t, "inner", flood), gate.ByHeader("X-None"), &gate.RateLimitOptions{
					Render: func(gate.Denial) gate.Reply { return gate.Reply{Status: 200, Body: []byte("refused")} },
				}))
			app.Routes[0].Method, app.Routes[0].Pattern, app.Routes[0].Handler = "GET", "/detail", never(t)
			address := d.Serve(t, app)
			for i := range flood {
				want := 200
				if i >= admitted {
					want = 429
				}
				if a := get(t, address, "/detail"); a.status != want {
					t.Errorf("request %d: got %d, want %d", i, a.status, want)
				}
			}
			if n := used(t, l); n != admitted {
				t.Errorf("%d permits are used, want %d", n, admitted)
			}
		})
	}
}

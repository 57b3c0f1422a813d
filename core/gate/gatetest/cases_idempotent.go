package gatetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
)

const (
	account = "X-Account"
	marker  = "Idempotent-Replayed: true"
)

// newGuard makes a guard with a Redis of its own, and a budget for a busy machine.
func newGuard(t testing.TB, d Driver, opts idempotency.Options) *idempotency.Guard {
	t.Helper()
	return newGuardOf(t, d, idempotency.Retry{}, opts)
}

func newGuardOf(t testing.TB, d Driver, policy idempotency.Policy, opts idempotency.Options) *idempotency.Guard {
	t.Helper()
	if opts.Budget = patience(); opts.Lease == 0 { // a case that sets it shortens the budget to a third of it
		opts.Lease = lasting()
	}
	g, err := idempotency.New(d.Redis(t), "gatetest", policy, &opts)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// guarded is a route whose requests run once, by account and key.
func guarded(g *idempotency.Guard, opts *gate.IdempotentOptions, h Handler) Route {
	return Route{
		Method: "POST", Pattern: "/orders", Handler: h,
		Gates: []gate.Gate{gate.Idempotent(g, gate.ByHeader(account), opts)},
	}
}

// scope is the guard's key for alice's request with key 17 on the route of guarded.
var scope = gate.IdempotencyScope("header:x-account=alice", "POST", "/orders", "17")

// keyed are alice's header lines of a request with a key.
func keyed(key string, more ...string) []string {
	return append(more, account+": alice", "Idempotency-Key: "+key)
}

// buy sends alice's request with key 17, on a connection of its own.
func buy(t testing.TB, address string) answer {
	t.Helper()
	return dial(t, address).post("/orders", "tea", keyed("17")...)
}

// isProblem fails the test unless the answer is exactly this problem.
func (a answer) isProblem(t testing.TB, status int, kind, title string) {
	t.Helper()
	body, lines := fmt.Sprintf(`"title":%q,"status":%d`, title, status), []string(nil)
	if kind != "" {
		body = fmt.Sprintf(`"type":%q,`, gate.TypeIdempotency+kind) + body
	}
	if kind == "in-flight" || kind == "not-begun" {
		body, lines = body+`,"detail":"Retry after 1 s."`, []string{"Retry-After: 1"}
	}
	a.is(t, status, "{"+body+"}\n", append(lines, "Cache-Control: no-store", "Content-Type: application/problem+json")...)
}

func (a answer) isInFlight(t testing.TB) {
	t.Helper()
	a.isProblem(t, 409, "in-flight", "A request with this key is running")
}

func (a answer) isDone(t testing.TB) {
	t.Helper()
	a.isProblem(t, 409, "already-done", "The request was done, but its answer is not available any more")
}

func (a answer) isInDoubt(t testing.TB) {
	t.Helper()
	a.isProblem(t, 409, "in-doubt", "It is unknown whether the request was done")
}

// numbered is a handler that answers with the number of its run.
func numbered(runs *atomic.Int64) Handler {
	return func(x Exchange) error { return say(201, fmt.Sprint("run ", runs.Add(1)))(x) }
}

// isRun fails the test unless the answer is that of a run of numbered.
func (a answer) isRun(t testing.TB, n int, replayed bool) {
	t.Helper()
	lines := []string{"Content-Type: " + plain}
	if replayed {
		lines = append(lines, marker)
	}
	a.is(t, 201, fmt.Sprint("run ", n), lines...)
}

// claimed finds the claim as a handler does.
func claimed(t testing.TB, x Exchange) *idempotency.Claim {
	t.Helper()
	c, ok := idempotency.FromContext(x.Context())
	if !ok || c.Err() != nil || c.Fence() == 0 || x.Context().Err() != nil {
		t.Errorf("the handler found the claim %v, %v, in a context with %v, "+
			"want one that is held, in a context without an error", c, ok, x.Context().Err())
		return new(idempotency.Claim)
	}
	return c
}

// idempotentOnce: of many equal requests at the same time, one runs. Its handler waits
// until all the others have been refused, or with Wait until all of them have arrived.
func idempotentOnce(t *testing.T, d Driver) {
	for name, wait := range map[string]time.Duration{"Refuse": 0, "Wait": patience()} {
		t.Run(name, func(t *testing.T) {
			const requests = 50
			g := newGuard(t, d, idempotency.Options{})
			var runs, came, refused atomic.Int64
			others := func() bool { return refused.Load() == requests-1 || wait > 0 && came.Load() == requests }
			route := guarded(g, &gate.IdempotentOptions{Wait: wait}, func(x Exchange) error {
				claimed(t, x)
				await(t, "the others", others)
				x.SetHeader("Location", "/orders/1")
				return numbered(&runs)(x)
			})
			route.Gates = append([]gate.Gate{enter(func(gate.Request) gate.Pass {
				came.Add(1)
				return gate.Pass{}
			})}, route.Gates...)
			address := d.Serve(t, App{Routes: []Route{route}})
			var first, replayed atomic.Int64
			var wg sync.WaitGroup
			for range requests {
				c := dial(t, address)
				wg.Go(func() {
					a, err := c.try("POST", "/orders", "tea", keyed("17", "Content-Length: 3")...)
					lines := []string{"Content-Type: " + plain, "Location: /orders/1"}
					switch {
					case err != nil:
						t.Error(err)
					case a.status == 409 && wait == 0:
						refused.Add(1)
						a.isInFlight(t)
					case a.header.Get("Idempotent-Replayed") == "":
						first.Add(1)
						a.is(t, 201, "run 1", lines...)
					default:
						replayed.Add(1)
						a.is(t, 201, "run 1", append(lines, marker)...)
					}
				})
			}
			wg.Wait()
			if runs.Load() != 1 || first.Load() != 1 || first.Load()+replayed.Load()+refused.Load() != requests || wait == 0 && replayed.Load() > 0 {
				t.Errorf("got %d runs, %d first answers, %d replayed, %d refused, "+
					"want 1 run, 1 first answer, %d in all",
					runs.Load(), first.Load(), replayed.Load(), refused.Load(), requests)
			}
			buy(t, address).is(t, 201, "run 1", "Content-Type: "+plain, "Location: /orders/1", marker)
		})
	}
}

// idempotentReplay: later requests get the same answer, with the marker and without the
// fields that are never stored.
func idempotentReplay(t *testing.T, d Driver) {
	bytes := make([]byte, 256)
	for i := range bytes {
		bytes[i] = byte(i)
	}
	for name, h := range map[string]Handler{
		"Created": func(x Exchange) error {
			x.SetHeader("Content-Type", "application/json")
			x.SetHeader("Location", "/orders/1")
			x.SetHeader("Etag", `"1"`)
			x.SetHeader("X-Cost", "7")
			x.AddHeader("Link", "</orders/2>; rel=next")
			x.AddHeader("Link", "</orders/0>; rel=prev")
			x.AddHeader("Link", "</orders>; rel=up")
			x.AddHeader("Set-Cookie", "session=1")
			x.AddHeader("Set-Cookie", "theme=dark")
			x.SetHeader("Www-Authenticate", "Basic")
			x.SetHeader("Authorization", "Bearer 1")
			x.SetHeader("X-Other", "1")
			return x.Send(201, `{"order":1}`)
		},
		"NotFound":       say(404, "no such tea"),
		"NoContent":      func(x Exchange) error { return x.Send(204, "") },
		"NotModified":    func(x Exchange) error { x.SetHeader("Etag", `"1"`); return x.Send(304, "") },
		"NothingWritten": func(Exchange) error { return nil },
		"NoContentType":  func(x Exchange) error { return x.Send(200, "<html><p>guess") },
		"EveryByte":      say(200, string(bytes)),
		"JustShort":      say(200, strings.Repeat("x", 1000)),
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuard(t, d, idempotency.Options{})
			var runs atomic.Int64
			options := &gate.IdempotentOptions{MaxResponse: 1000, Headers: []string{"x-cost"}}
			address := d.Serve(t, App{
				Around: []Middleware{func(x Exchange, next func() error) error {
					x.AddHeader("Link", "</>; rel=index")
					return next()
				}},
				Routes: []Route{guarded(g, options, func(x Exchange) error {
					runs.Add(1)
					return h(x)
				})},
			})
			first := buy(t, address)
			if first.header.Get("Idempotent-Replayed") != "" {
				t.Error("the first answer is marked as replayed, want no mark")
			}
			want := slices.DeleteFunc(visible(first.header), func(line string) bool {
				for _, never := range []string{"Set-Cookie:", "Www-Authenticate:", "Authorization:", "X-Other:"} {
					if strings.HasPrefix(line, never) {
						return true
					}
				}
				return false
			})
			if name == "Created" && (len(want) != 8 || len(visible(first.header)) != 13) {
				t.Fatalf("the first answer has the lines %q, want 13, 8 of them to be stored", visible(first.header))
			}
			for range 2 {
				buy(t, address).is(t, first.status, first.body, append(want, marker)...)
			}
			if n := runs.Load(); n != 1 {
				t.Errorf("got %d runs, want 1", n)
			}
		})
	}
}

// idempotentHead: neither the answer to HEAD nor its replay has a body.
func idempotentHead(t *testing.T, d Driver) {
	g := newGuard(t, d, idempotency.Options{})
	var runs atomic.Int64
	route := guarded(g, &gate.IdempotentOptions{Methods: []string{"HEAD"}}, func(x Exchange) error {
		runs.Add(1)
		x.SetHeader("Etag", `"1"`)
		return say(200, "the body of GET")(x)
	})
	route.Method = "GET"
	c := dial(t, d.Serve(t, App{Routes: []Route{route}}))
	lines := []string{"Content-Type: " + plain, `Etag: "1"`}
	c.do("HEAD", "/orders", keyed("17")...).is(t, 200, "", lines...)
	for range 2 {
		c.do("HEAD", "/orders", keyed("17")...).is(t, 200, "", append(lines, marker)...)
	}
	for range 2 {
		c.do("GET", "/orders", keyed("17")...).is(t, 200, "the body of GET", lines...)
	}
	if n := runs.Load(); n != 3 {
		t.Errorf("got %d runs, want 3", n)
	}
}

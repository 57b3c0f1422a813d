package gatetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
)

// becoming serves /orders with a handler that notes the attempt of each run.
func becoming(t *testing.T, d Driver, policy idempotency.Policy, opts *gate.IdempotentOptions, h Handler) (address string, g *idempotency.Guard, runs *attempts) {
	g, runs = newGuardOf(t, d, policy, idempotency.Options{}), new(attempts)
	return d.Serve(t, App{
		OnError: func(x Exchange, _ error) { _ = say(418, "sorry")(x) },
		Routes: []Route{guarded(g, opts, func(x Exchange) error {
			runs.note(claimed(t, x).Attempt())
			return h(x)
		})},
	}), g, runs
}

// attempts are those that ran. What the network orders is no order for the race detector
// if a framework polls its connections itself, so they are locked.
type attempts struct {
	mu sync.Mutex
	n  []int64
}

func (a *attempts) note(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n = append(a.n, n)
}

// concluded awaits the end of n claims.
func concluded(t testing.TB, g *idempotency.Guard, n int) {
	t.Helper()
	await(t, "the claim to be concluded", func() bool {
		s := g.Stats()
		return s.Completed+s.Abandoned == uint64(n)
	})
}

func ran(t testing.TB, runs *attempts, want ...int64) {
	t.Helper()
	runs.mu.Lock()
	defer runs.mu.Unlock()
	if !slices.Equal(runs.n, want) {
		t.Errorf("the handler ran as the attempts %d, want %d", runs.n, want)
	}
}

// idempotentUnstored: an answer that cannot be stored whole was sent all the same, so
// nothing runs again.
func idempotentUnstored(t *testing.T, d Driver) {
	for name, h := range map[string]Handler{
		"TooLarge": say(200, "01234567890"),
		"Streamed": func(x Exchange) error {
			return x.Stream(200, func(yield func(string) bool) { _ = yield("0") && yield("1") })
		},
		"Hijacked": func(x Exchange) error {
			return x.Hijack(func(conn net.Conn) {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "Hijacked" && !d.Hijack {
				t.Skip("connections of this framework cannot be taken over")
			}
			options := &gate.IdempotentOptions{MaxResponse: 10, OnError: func(_ gate.Request, err error) {
				t.Errorf("the hook was told %v, want nothing", err)
			}}
			address, g, attempts := becoming(t, d, idempotency.Retry{}, options, h)
			if a := buy(t, address); a.status != 200 {
				t.Errorf("got %d, want 200", a.status)
			}
			concluded(t, g, 1)
			for range 2 {
				buy(t, address).isDone(t)
			}
			ran(t, attempts, 1)
		})
	}
}

// idempotentErrors: an error that the application renders where the gate is counts as an
// answer like any other. An error that is left to middleware outside is not an answer.
func idempotentErrors(t *testing.T, d Driver) {
	if d.Errors == NoErrors {
		t.Skip("handlers of this framework return no error")
	}
	address, _, attempts := becoming(t, d, idempotency.Retry{}, nil, func(Exchange) error { return errHandler })
	buy(t, address).is(t, 418, "sorry", "Content-Type: "+plain)
	if d.Errors == ErrorsOutside {
		buy(t, address).is(t, 418, "sorry", "Content-Type: "+plain)
		ran(t, attempts, 1, 2)
		return
	}
	buy(t, address).is(t, 418, "sorry", "Content-Type: "+plain, marker)
	ran(t, attempts, 1)
}

// idempotentInDoubt: if a handler panics, or answers with 500 and above, it is unknown
// what was done. With Retry it runs again, and the handler is told so. With Reject it
// does not run until an operator has resolved it.
func idempotentInDoubt(t *testing.T, d Driver) {
	for name, h := range map[string]Handler{
		"Panic":           func(Exchange) error { panic("gatetest: a handler panics") },
		"PanicInTheEnd":   func(x Exchange) error { _ = say(200, "ok")(x); panic("gatetest: a handler panics") },
		"InternalError":   say(500, "no"),
		"Unavailable":     say(503, "no"),
		"NothingStandard": say(799, "no"),
	} {
		ask := func(address string) {
			if a, err := dial(t, address).try("POST", "/orders", "tea", keyed("17", "Content-Length: 3")...); err == nil && (a.status == 409 || a.header.Get("Idempotent-Replayed") != "") {
				t.Errorf("got %d %s, want the handler's own answer, neither a conflict nor a replay", a.status, a.body)
			}
		}
		t.Run(name+"/Retry", func(t *testing.T) {
			address, g, attempts := becoming(t, d, idempotency.Retry{}, nil, h)
			for i := range 3 {
				ask(address)
				concluded(t, g, i+1)
			}
			ran(t, attempts, 1, 2, 3)
		})
		t.Run(name+"/Reject", func(t *testing.T) {
			told := make(chan error, 16)
			options := &gate.IdempotentOptions{OnError: func(_ gate.Request, err error) { told <- err }}
			address, g, attempts := becoming(t, d, idempotency.Reject{}, options, h)
			ask(address)
			concluded(t, g, 1)
			for range 2 {
				buy(t, address).isInDoubt(t)
				if err := next(t, "OnError to be told", told); !errors.Is(err, idempotency.ErrInDoubt) {
					t.Errorf("the hook was told %v, want %v", err, idempotency.ErrInDoubt)
				}
			}
			ran(t, attempts, 1)
			if err := g.Resolve(context.Background(), scope, idempotency.NothingDone()); err != nil {
				t.Fatal(err)
			}
			ask(address)
			concluded(t, g, 2)
			found := gate.Reply{Status: 201, Body: []byte("found")}
			if err := g.Resolve(context.Background(), scope, idempotency.DoneWith(gate.StoredReply(found))); err != nil {
				t.Fatal(err)
			}
			buy(t, address).is(t, 201, "found", marker)
			ran(t, attempts, 1, 2)
		})
	}
}

// idempotentStatus: an answer that depends on who asks, or when, is not stored. The next
// request runs, even with Reject.
func idempotentStatus(t *testing.T, d Driver) {
	for _, status := range []int{401, 403, 408, 425, 429} {
		address, _, attempts := becoming(t, d, idempotency.Reject{}, nil, say(status, "later"))
		for range 2 {
			buy(t, address).is(t, status, "later", "Content-Type: "+plain)
		}
		ran(t, attempts, 1, 2)
	}
	for _, status := range []int{200, 299, 301, 400, 404, 409, 422, 451} {
		address, _, attempts := becoming(t, d, idempotency.Reject{}, nil, say(status, "so it is"))
		buy(t, address).is(t, status, "so it is", "Content-Type: "+plain)
		buy(t, address).is(t, status, "so it is", "Content-Type: "+plain, marker)
		ran(t, attempts, 1)
	}
}

// idempotentReplayOption: if Replay says that an answer is not stored, its status says
// whether the work was done.
func idempotentReplayOption(t *testing.T, d Driver) {
	for name, c := range map[string]struct {
		status int
		keep   bool
		then   func(a answer, t *testing.T)
		runs   []int64
	}{
		"404":       {404, false, func(a answer, t *testing.T) { a.is(t, 404, "said", "Content-Type: "+plain) }, []int64{1, 2}},
		"201":       {201, false, func(a answer, t *testing.T) { a.isDone(t) }, []int64{1}},
		"500":       {500, false, func(a answer, t *testing.T) { a.isInDoubt(t) }, []int64{1}},
		"500, kept": {500, true, func(a answer, t *testing.T) { a.is(t, 500, "said", "Content-Type: "+plain, marker) }, []int64{1}},
		"403, kept": {403, true, func(a answer, t *testing.T) { a.is(t, 403, "said", "Content-Type: "+plain, marker) }, []int64{1}},
	} {
		t.Run(strings.ReplaceAll(name, ", ", "-"), func(t *testing.T) {
			address, _, attempts := becoming(t, d, idempotency.Reject{}, &gate.IdempotentOptions{Replay: func(r *gate.Reply) bool {
				if r.Status != c.status || string(r.Body) != "said" {
					t.Errorf("Replay was asked about %d %q, want %d \"said\"", r.Status, r.Body, c.status)
				}
				return c.keep
			}}, say(c.status, "said"))
			buy(t, address).is(t, c.status, "said", "Content-Type: "+plain)
			c.then(buy(t, address), t)
			ran(t, attempts, c.runs...)
		})
	}
}

// idempotentAbandoned: if a handler says that it has done nothing, that holds, whatever
// it answers.
func idempotentAbandoned(t *testing.T, d Driver) {
	var runs atomic.Int64
	address, g, attempts := becoming(t, d, idempotency.Reject{}, nil, func(x Exchange) error {
		if n := runs.Add(1); n < 3 {
			if err := claimed(t, x).Conclude(x.Context(), idempotency.NothingDone()); err != nil {
				t.Error(err)
			}
			return say(int(200+300*(n-1)), fmt.Sprint("not ", n))(x)
		}
		return say(200, "done")(x)
	})
	buy(t, address).is(t, 200, "not 1", "Content-Type: "+plain)
	buy(t, address).is(t, 500, "not 2", "Content-Type: "+plain)
	buy(t, address).is(t, 200, "done", "Content-Type: "+plain)
	buy(t, address).is(t, 200, "done", "Content-Type: "+plain, marker)
	ran(t, attempts, 1, 2, 3)
	if s := g.Stats(); s.Abandoned != 2 || s.Completed != 1 || s.Replayed != 1 {
		t.Errorf("got stats %+v, want 2 abandoned, 1 completed and 1 replayed", s)
	}
}

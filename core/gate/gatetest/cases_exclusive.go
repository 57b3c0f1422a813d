package gatetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/lock"
)

// order is the header field by which requests exclude each other.
const order = "X-Order"

// newLocker makes a locker with a Redis of its own, and a budget for a busy machine. It
// takes no options, because a shorter Lease or MaxHold would shorten the budget. A case
// that is about a lost lock uses lose.
func newLocker(t testing.TB, d Driver) *lock.Locker {
	t.Helper()
	l, err := lock.New(d.Redis(t), "gatetest", &lock.Options{Budget: patience(), Lease: lasting()})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// lose forces the lock of an order open, and lets the lock that its handler holds find
// that out.
func lose(t testing.TB, l *lock.Locker, held *lock.Lock, order string) {
	t.Helper()
	if was, err := l.ForceRelease(context.Background(), "header:x-order="+order); !was || err != nil {
		t.Errorf("ForceRelease: got %v, %v, want true and no error", was, err)
	}
	if err := held.Extend(context.Background(), lasting()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Extend of a lock that was forced open: got %v, want %v", err, lock.ErrLost)
	}
}

// exclusive serves POST /exclusive, one request of an order at a time.
func exclusive(t *testing.T, d Driver, l *lock.Locker, opts *gate.ExclusiveOptions, h Handler) (address string) {
	return d.Serve(t, App{Routes: []Route{{
		Method: "POST", Pattern: "/exclusive", Handler: h,
		Gates: []gate.Gate{gate.Exclusive(l, gate.ByHeader(order), opts)},
	}}})
}

// order17 asks on a connection of its own, because a server may close the connection of a
// request whose body it has not read.
func order17(t testing.TB, address string) answer {
	t.Helper()
	return dial(t, address).post("/exclusive", "", order+": 17")
}

// fenced finds the lock as a handler does.
func fenced(t testing.TB, x Exchange) *lock.Lock {
	t.Helper()
	held, ok := lock.FromContext(x.Context())
	if !ok || held.Err() != nil || held.Fence() == 0 {
		t.Errorf("the handler found the lock %v, %v, want one that is held and has a fence", held, ok)
		return new(lock.Lock)
	}
	return held
}

const heldProblem = `{"title":"Another request for the same thing is running","status":409,"detail":"Retry after 1 s."}` + "\n"

// isHeld fails the test unless the answer says that another request has the lock.
func (a answer) isHeld(t testing.TB) {
	t.Helper()
	a.is(t, 409, heldProblem, "Cache-Control: no-store", "Content-Type: application/problem+json", "Retry-After: 1")
}

// exclusiveRows: of many concurrent requests, those of one order run one after the other.
// With Wait all of them run; otherwise the rest are refused.
func exclusiveRows(t *testing.T, d Driver) {
	for name, wait := range map[string]time.Duration{"Wait": patience(), "Refuse": 0} {
		t.Run(name, func(t *testing.T) {
			const requests = 50
			l := newLocker(t, d)
			var running, handled, last atomic.Int64
			address := exclusive(t, d, l, &gate.ExclusiveOptions{Wait: wait}, func(x Exchange) error {
				if n := running.Add(1); n > 1 {
					t.Errorf("got %d at once, want one at a time", n)
				}
				defer running.Add(-1)
				held := fenced(t, x)
				if before := last.Swap(held.Fence()); before >= held.Fence() {
					t.Errorf("the fence %d came after %d, want it to grow", held.Fence(), before)
				}
				if _, err := l.Inspect(x.Context(), "the work, during which others come"); err != nil {
					t.Error(err)
				}
				handled.Add(1)
				return say(200, "done")(x)
			})
			var done, refused atomic.Int64
			var wg sync.WaitGroup
			for range requests {
				c := dial(t, address)
				wg.Go(func() {
					a, err := c.try("POST", "/exclusive", "", order+": 17", "Content-Length: 0")
					switch {
					case err != nil:
						t.Error(err)
					case a.status == 200:
						done.Add(1)
					default:
						refused.Add(1)
						a.isHeld(t)
					}
				})
			}
			wg.Wait()
			if done.Load() != handled.Load() || done.Load() == 0 || wait > 0 && refused.Load() != 0 {
				t.Errorf("got %d done, %d handled and %d refused, "+
					"want each handled one done, and none refused if they wait",
					done.Load(), handled.Load(), refused.Load())
			}
		})
	}
}

// exclusiveHandler: while a handler runs, requests of its order are refused, and those of
// other orders are not. When the client has read its answer, the order is free.
func exclusiveHandler(t *testing.T, d Driver) {
	l := newLocker(t, d)
	running, finish := make(chan *lock.Lock, 16), make(chan struct{})
	end := sync.OnceFunc(func() { close(finish) })
	defer end() // or a server with a bug would wait for ever
	outside := func(x Exchange, next func() error) error {
		before := x.Context()
		defer func() {
			if _, found := lock.FromContext(x.Context()); found || x.Context() != before {
				t.Error("the lock's context stays on the request, want the one from before")
			}
		}()
		return next()
	}
	address := d.Serve(t, App{Routes: []Route{{
		Method: "POST", Pattern: "/exclusive", Around: []Middleware{outside},
		Gates: []gate.Gate{gate.Exclusive(l, gate.ByHeader(order), nil)},
		Handler: func(x Exchange) error {
			held := fenced(t, x)
			if x.Context().Done() != held.Context().Done() {
				t.Error("the handler's context is not that of the lock, want the lock's")
			}
			if x.Query("slow") != "" {
				running <- held
				<-finish
			}
			return say(200, "done")(x)
		},
	}}})
	slow := dial(t, address)
	if err := slow.write("POST", "/exclusive?slow=1", "", order+": 17", "Content-Length: 0"); err != nil {
		t.Fatal(err)
	}
	held := next(t, "the handler to run", running)
	for range 2 {
		order17(t, address).isHeld(t)
		dial(t, address).post("/exclusive", "", order+": 18").is(t, 200, "done", "Content-Type: "+plain)
	}
	for _, lines := range [][]string{nil, {order + ":"}, {order + ": 19", order + ": 19"}} {
		if a := dial(t, address).post("/exclusive", "", lines...); a.status != 400 || strings.Contains(a.body, "19") {
			t.Errorf("with %q: got %d %q, want 400 without the value", lines, a.status, a.body)
		}
	}
	if err := held.Err(); err != nil {
		t.Errorf("while the handler runs: the lock has the error %v, want none", err)
	}
	end()
	if a, err := slow.read("POST"); err != nil || a.status != 200 {
		t.Fatalf("the slow request: got %d, %v, want 200", a.status, err)
	}
	if err := held.Err(); !errors.Is(err, lock.ErrReleased) {
		t.Errorf("when the response had ended: the lock has the error %v, want %v", err, lock.ErrReleased)
	}
	c := dial(t, address)
	for range 20 {
		c.post("/exclusive", "", order+": 17").is(t, 200, "done", "Content-Type: "+plain)
	}
}

// exclusivePanics: the lock of a handler that panics is released.
func exclusivePanics(t *testing.T, d Driver) {
	l := newLocker(t, d)
	address := exclusive(t, d, l, nil, func(Exchange) error { panic("gatetest: a handler panics") })
	for range 3 {
		a, err := dial(t, address).try("POST", "/exclusive", "", order+": 17", "Content-Length: 0")
		if err != nil || a.status != 500 || a.body != Recovered {
			t.Errorf("got %d %q, %v, want 500 %q", a.status, a.body, err, Recovered)
		}
		await(t, "the lock to be free", func() bool { return l.Stats().Holding == 0 })
	}
}

// exclusiveGone: the lock is held as long as the handler runs, and no longer, whether its
// client is gone or not. If a request ends with its client, so does the handler's
// context.
func exclusiveGone(t *testing.T, d Driver) {
	l := newLocker(t, d)
	running, finish := make(chan *lock.Lock, 16), make(chan struct{})
	ended := make(chan struct{}, 16)
	end := sync.OnceFunc(func() { close(finish) })
	defer end() // or a server with a bug would wait for ever
	address := exclusive(t, d, l, nil, func(x Exchange) error {
		if x.Query("slow") != "" {
			running <- fenced(t, x)
			if d.Disconnect {
				select {
				case <-x.Context().Done():
				case <-finish:
					return nil
				}
			}
			ended <- struct{}{}
			<-finish
		}
		return say(200, "done")(x)
	})
	gone := dial(t, address)
	if err := gone.write("POST", "/exclusive?slow=1", "", order+": 17", "Content-Length: 0"); err != nil {
		t.Fatal(err)
	}
	held := next(t, "the handler to run", running)
	_ = gone.conn.Close()
	next(t, "the handler's context to end", ended)
	if err := held.Err(); err != nil {
		t.Errorf("while the handler still ran: the lock has the error %v, want none", err)
	}
	order17(t, address).isHeld(t)
	end()
	await(t, "the lock to be free", func() bool { return l.Stats().Holding == 0 })
	order17(t, address).is(t, 200, "done", "Content-Type: "+plain)
}

// exclusiveLost: losing the lock ends the handler's context. The handler's answer is
// still sent.
func exclusiveLost(t *testing.T, d Driver) {
	l := newLocker(t, d)
	told := make(chan error, 16)
	options := &gate.ExclusiveOptions{OnError: func(_ gate.Request, err error) { told <- err }}
	address := exclusive(t, d, l, options, func(x Exchange) error {
		lose(t, l, fenced(t, x), "17")
		select {
		case <-x.Context().Done():
		case <-time.After(patience()):
			t.Error("the handler's context did not end, want it to end when the lock is lost")
		}
		return say(503, fmt.Sprint(errors.Is(context.Cause(x.Context()), lock.ErrLost)))(x)
	})
	order17(t, address).is(t, 503, "true", "Content-Type: "+plain)
	if err := next(t, "OnError to be told", told); !errors.Is(err, lock.ErrLost) {
		t.Errorf("the hook was told %v, want %v", err, lock.ErrLost)
	}
}

// exclusiveOuter: a limit outside counts the requests that the lock refuses. A request
// that a limit inside refuses leaves no lock behind.
func exclusiveOuter(t *testing.T, d Driver) {
	for name, mount := range map[string]func(outer, own, inner gate.Gate) App{
		"Apart": func(outer, own, inner gate.Gate) App {
			return App{Gates: []gate.Gate{outer}, Routes: []Route{{
				Around: []Middleware{wrapping}, Gates: []gate.Gate{own, inner},
			}}}
		},
		"Chain": func(outer, own, inner gate.Gate) App {
			return App{Routes: []Route{{Gates: []gate.Gate{gate.Chain(outer, own, inner)}}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLocker(t, d)
			all, few := perHour(t, "all", 100), perHour(t, "few", 2)
			app := mount(gate.RateLimit(all, everyone, nil),
				gate.Exclusive(l, gate.ByHeader(order), nil), gate.RateLimit(few, everyone, nil))
			app.Routes[0].Method, app.Routes[0].Pattern = "POST", "/exclusive"
			app.Routes[0].Handler = func(x Exchange) error {
				fenced(t, x)
				return say(200, "done")(x)
			}
			address := d.Serve(t, app)
			held, err := l.Try(t.Context(), "header:x-order=18")
			if err != nil {
				t.Fatal(err)
			}
			defer held.Release(context.Background())
			for i, ask := range []struct {
				order  string
				status int
			}{{"17", 200}, {"18", 409}, {"17", 200}, {"18", 409}, {"17", 429}, {"17", 429}} {
				a := dial(t, address).post("/exclusive", "", order+": "+ask.order)
				if got, want := used(t, all), int64(i+1); a.status != ask.status || got != want {
					t.Errorf("request %d: got %d, and %d used, want %d and %d", i, a.status, got, ask.status, want)
				}
			}
			if n := l.Stats().Holding; n != 1 {
				t.Errorf("%d locks are held, want the one of this test", n)
			}
		})
	}
}

package gate_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// locks makes a locker on a Redis that becomes unreachable on demand.
func locks(t testing.TB, opts lock.Options) (*lock.Locker, *severed) {
	t.Helper()
	s := severable(t)
	if opts.Budget == 0 {
		opts.Budget = 5 * time.Second
	}
	l, err := lock.New(s, "test", &opts)
	if err != nil {
		t.Fatal(err)
	}
	return l, s
}

// isHeld asks Redis about everyone's lock.
func isHeld(t testing.TB, l *lock.Locker) bool {
	t.Helper()
	state, err := l.Inspect(context.Background(), "everyone")
	if err != nil {
		t.Fatal(err)
	}
	return state.Held
}

func TestExclusiveHoldsTheLockUntilLeave(t *testing.T) {
	t.Parallel()
	l, _ := locks(t, lock.Options{})
	g := gate.Exclusive(l, gate.ByHeader("X-Order"), nil)
	seven := with("X-Order", "seven")
	first := g.Enter(seven)
	if status(first) != 200 || first.Header != nil || first.Capture != 0 {
		t.Fatalf("the first request: got %+v, want it admitted, without fields and captures", first)
	}
	held := g.Enter(seven)
	const body = `{"title":"Another request for the same thing is running","status":409,"detail":"Retry after 1 s."}` + "\n"
	if status(held) != 409 || string(held.Reply.Body) != body || held.Leave != nil || held.Context != nil {
		t.Errorf("the second request: got %+v, want 409 with the body %q and neither Leave nor Context",
			held.Reply, body)
	}
	if h := held.Reply.Header; single(t, h, "Retry-After") != "1" || single(t, h, "Cache-Control") != "no-store" ||
		single(t, h, "Content-Type") != "application/problem+json" || len(h) != 3 {
		t.Errorf("got the fields %+v, "+
			"want Retry-After: 1, Cache-Control: no-store and Content-Type: application/problem+json", h)
	}
	if got := status(g.Enter(with("X-Order", "eight"))); got != 200 {
		t.Errorf("another key: got %d, want 200", got)
	}
	if err := first.Context.Err(); err != nil {
		t.Errorf("before Leave: the context has the error %v, want none", err)
	}
	first.Leave(nil)
	first.Leave(nil)
	if status(g.Enter(seven)) != 200 || status(g.Enter(seven)) != 409 {
		t.Error("after the first has left: two requests got other statuses, want 200 and 409")
	}
}

// The handler's context is the lock's. In all other respects it is the request's.
func TestExclusiveContext(t *testing.T) {
	t.Parallel()
	l, _ := locks(t, lock.Options{})
	ctx, stop := context.WithCancel(context.WithValue(context.Background(), userKey(1), "alice"))
	g := gate.Exclusive(l, everyone, nil)
	p := g.Enter(&request{ctx: ctx})
	held, ok := lock.FromContext(p.Context)
	if !ok || held.Fence() == 0 || held.Err() != nil || p.Context.Value(userKey(1)) != "alice" {
		t.Fatalf("the handler's context: got the lock %v, %v, want one that is held, and the request's values",
			held, ok)
	}
	stop()
	<-p.Context.Done()
	if held.Err() != nil || !isHeld(t, l) || status(g.Enter(&request{})) != 409 {
		t.Error("the lock was given back before the handler had returned, want it held until then")
	}
	p.Leave(answered(200))
	if !errors.Is(held.Err(), lock.ErrReleased) || isHeld(t, l) {
		t.Errorf("after Leave of a client that is gone: got %v, want %v and the lock free",
			held.Err(), lock.ErrReleased)
	}
	next := g.Enter(&request{})
	if again, _ := lock.FromContext(next.Context); again == nil || again.Fence() <= held.Fence() {
		t.Errorf("the next request found no lock with a fence above %d, want one", held.Fence())
	}
	next.Leave(nil)
	if !errors.Is(context.Cause(next.Context), lock.ErrReleased) {
		t.Errorf("the context after Leave: got the cause %v, want %v", context.Cause(next.Context), lock.ErrReleased)
	}
}

func TestExclusiveAnswers(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom secret-key-name")
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	late, expire := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer expire()
	ok := with("X-Order", "k")
	key := gate.ByHeader("X-Order")
	locker, _ := locks(t, lock.Options{})
	refused, severed := locks(t, lock.Options{})
	severed.gone.Store(true)
	for name, c := range map[string]struct {
		locker *lock.Locker
		key    gate.Key
		r      *request
		status int
		hook   error // nil: not told
	}{
		"alone":                {locker, key, ok, 200, nil},
		"missing":              {locker, key, &request{}, 400, nil},
		"doubled":              {locker, key, with("X-Order", "k", "k"), 400, nil},
		"the key fails":        {locker, failing(boom), ok, 500, boom},
		"no route":             {locker, gate.ByRoute(), ok, 500, gate.ErrWiring},
		"Redis is down":        {refused, key, ok, 503, script.ErrConfiguration},
		"the client went away": {locker, key, &request{ctx: gone, header: ok.header}, 503, nil},
		"no time is left":      {locker, key, &request{ctx: late, header: ok.header}, 503, context.DeadlineExceeded},
	} {
		for _, wait := range []time.Duration{0, 10 * time.Second} {
			var h hook
			p := gate.Exclusive(c.locker, c.key, &gate.ExclusiveOptions{Wait: wait, OnError: h.hear}).Enter(c.r)
			if status(p) != c.status {
				t.Errorf("%s, wait %v: got %d, want %d", name, wait, status(p), c.status)
			}
			if told := h.take(); (told == nil) != (c.hook == nil) || c.hook != nil && !errors.Is(told, c.hook) {
				t.Errorf("%s, wait %v: the hook was told %v, want %v", name, wait, told, c.hook)
			}
			if p.Reply == nil {
				p.Leave(nil)
			} else if strings.Contains(string(p.Reply.Body), "secret-key-name") {
				t.Errorf("%s: the client reads %s, want nothing of the error's text", name, p.Reply.Body)
			}
		}
	}
}

func TestExclusiveWaits(t *testing.T) {
	t.Parallel()
	l, _ := locks(t, lock.Options{})
	g := gate.Exclusive(l, everyone, &gate.ExclusiveOptions{Wait: time.Minute})
	first := g.Enter(&request{})
	var left atomic.Bool
	passed := make(chan gate.Pass)
	go func() {
		p := g.Enter(&request{})
		if !left.Load() {
			t.Error("the second request entered while the first ran, want one at a time")
		}
		passed <- p
	}()
	redistest.Await(t, 20*time.Second, "the second to wait", func() bool { return l.Stats().Waiting == 1 })
	left.Store(true)
	first.Leave(nil)
	second := <-passed
	if status(second) != 200 {
		t.Fatalf("the second request: got %+v, want it admitted after the first has left", second.Reply)
	}

	ctx, goAway := context.WithCancel(context.Background())
	go func() { passed <- g.Enter(&request{ctx: ctx}) }()
	redistest.Await(t, 20*time.Second, "the third to wait", func() bool { return l.Stats().Waiting == 1 })
	goAway()
	if got := status(<-passed); got != 503 {
		t.Errorf("a client that goes away while it waits: got %d, want 503", got)
	}
	second.Leave(nil)
	if isHeld(t, l) {
		t.Error("a lock is held after all have left, want none")
	}
}

// Requests of several processes also run one at a time, on a real Redis and on a cluster.
func TestExclusiveInAllProcesses(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		const processes, requests = 3, 20
		var running, ran, last, refused atomic.Int64
		var wg sync.WaitGroup
		for range processes {
			l, err := lock.New(storetest.At(t, rdb, prefix), "test", &lock.Options{Budget: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			for n := range requests {
				g := gate.Exclusive(l, everyone, &gate.ExclusiveOptions{Wait: time.Duration(n%2) * time.Minute})
				wg.Go(func() {
					p := g.Enter(&request{})
					if p.Reply != nil {
						refused.Add(1)
						return
					}
					n := running.Add(1)
					held, _ := lock.FromContext(p.Context)
					if before := last.Swap(held.Fence()); n > 1 || held.Fence() <= before {
						t.Errorf("got %d at once, and the fence %d after %d, want one at a time and a growing fence",
							n, held.Fence(), before)
					}
					ran.Add(1)
					running.Add(-1)
					p.Leave(nil)
				})
			}
		}
		wg.Wait()
		if n := refused.Load(); ran.Load()+n != processes*requests || n > processes*requests/2 {
			t.Errorf("got %d run and %d refused, want %d in all, and no more than half of them refused",
				ran.Load(), n, processes*requests)
		}
	})
}

func TestExclusiveWaitEnds(t *testing.T) {
	t.Parallel()
	const wait = 50 * time.Millisecond
	l, _ := locks(t, lock.Options{})
	g := gate.Exclusive(l, everyone, &gate.ExclusiveOptions{Wait: wait})
	g.Enter(&request{})
	began := time.Now()
	p := g.Enter(&request{})
	if took := time.Since(began); status(p) != 409 || single(t, p.Reply.Header, "Retry-After") != "1" || took < wait {
		t.Errorf("got %+v after %v, want 409 with Retry-After: 1 after %v at least", p.Reply, took, wait)
	}
}

func TestExclusiveOptions(t *testing.T) {
	t.Parallel()
	l, _ := locks(t, lock.Options{})
	opts := &gate.ExclusiveOptions{
		Skip: func(r gate.Request) bool { return r.Path() == "/healthz" },
		Render: func(d gate.Denial) gate.Reply {
			if d.Status != 409 || d.Decision != nil || d.RetryAfter != time.Second {
				t.Errorf("got the denial %+v, want 409 without a decision, to retry after 1 s", d)
			}
			return gate.Reply{Body: []byte("busy")}
		},
	}
	g := gate.Exclusive(l, everyone, opts)
	*opts = gate.ExclusiveOptions{Wait: time.Minute}
	if p := g.Enter(&request{path: "/"}); status(p) != 200 {
		t.Errorf("the first request: got %+v, want it admitted", p.Reply)
	}
	if p := g.Enter(&request{path: "/healthz"}); p.Reply != nil || p.Leave != nil {
		t.Errorf("a skipped request: got %+v, want neither a reply nor a Leave", p)
	}
	p := g.Enter(&request{path: "/"})
	if status(p) != 409 || string(p.Reply.Body) != "busy" || single(t, p.Reply.Header, "Retry-After") != "1" {
		t.Errorf("the second request: got %+v, want 409 with the body busy and Retry-After: 1", p.Reply)
	}
}

// If a gate further in refuses or panics, the lock is released.
func TestExclusiveFreesLocksOfRequestsThatDidNotRun(t *testing.T) {
	t.Parallel()
	l, _ := locks(t, lock.Options{})
	g := gate.Exclusive(l, everyone, nil)
	if p := gate.Chain(g, gate.RateLimit(hourly(t, 1), failing(gate.Refuse(403, "No")), nil)).Enter(&request{}); status(p) != 403 {
		t.Errorf("got %+v, want 403 of the inner gate", p.Reply)
	}
	if isHeld(t, l) {
		t.Error("the lock is held after a gate further in refused, want it free")
	}
	panics(t, func() {
		gate.Chain(g, gate.RateLimit(hourly(t, 1), func(gate.Request) (string, error) { panic("mine") }, nil)).Enter(&request{})
	})
	if isHeld(t, l) {
		t.Error("the lock is held after a gate further in panicked, want it free")
	}

	p := gate.Exclusive(l, everyone, &gate.ExclusiveOptions{OnError: func(gate.Request, error) { panic("mine") }}).Enter(&request{})
	if _, err := l.ForceRelease(context.Background(), "everyone"); err != nil {
		t.Fatal(err)
	}
	panics(t, func() { p.Leave(answered(200)) })
	if n := l.Stats().Holding; n != 0 {
		t.Errorf("after a panic of the hook: got %d locks held, want 0", n)
	}
}

// The hook is told of a lock that was lost while the handler ran, or that could not be
// released. It gets a request that can still be read.
func TestExclusiveReportsALostLock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, l *lock.Locker, s *severed)
		want      error
	}{
		"held": {func(*testing.T, *lock.Locker, *severed) {}, nil},
		"forced": {func(t *testing.T, l *lock.Locker, _ *severed) {
			if was, err := l.ForceRelease(context.Background(), "everyone"); !was || err != nil {
				t.Errorf("ForceRelease: got %v, %v, want true and no error", was, err)
			}
		}, lock.ErrLost},
		"taken over": {func(t *testing.T, l *lock.Locker, _ *severed) {
			if _, err := l.ForceRelease(context.Background(), "everyone"); err != nil {
				t.Error(err)
			}
			if _, err := l.Try(context.Background(), "everyone"); err != nil {
				t.Error(err)
			}
		}, lock.ErrTakenByOther},
		"Redis went away": {func(_ *testing.T, _ *lock.Locker, s *severed) { s.gone.Store(true) }, script.ErrConfiguration},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, s := locks(t, lock.Options{})
			var told []error
			var of gate.Request
			g := gate.Exclusive(l, everyone, &gate.ExclusiveOptions{OnError: func(r gate.Request, err error) {
				told, of = append(told, err), r
			}})
			r := &request{method: "POST", path: "/orders"}
			p := g.Enter(r)
			c.meanwhile(t, l, s)
			*r = request{path: "/another"} // as a framework does
			p.Leave(answered(200))
			if c.want == nil {
				if told != nil {
					t.Errorf("the hook was told %v, want nothing", told)
				}
				return
			}
			if len(told) != 1 || !errors.Is(told[0], c.want) || of.Path() != "/orders" || of.Method() != "POST" {
				t.Errorf("the hook was told %v of %+v, want %v", told, of, c.want)
			}
		})
	}
}

// If the lock is lost, the handler's context ends.
func TestExclusiveLostWhileTheHandlerRuns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts   lock.Options
		forced bool
		want   error
	}{
		"forced":     {lock.Options{Lease: 15 * time.Second}, true, lock.ErrLost},
		"a lease":    {lock.Options{Lease: 6 * time.Second, NoRenewal: true}, false, lock.ErrExpired},
		"held it up": {lock.Options{MaxHold: 6 * time.Second}, false, lock.ErrMaxHold},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := locks(t, c.opts)
			p := gate.Exclusive(l, everyone, nil).Enter(&request{})
			if p.Context == nil {
				t.Fatalf("got the refusal %+v, want the request admitted", p.Reply)
			}
			if c.forced {
				if _, err := l.ForceRelease(context.Background(), "everyone"); err != nil {
					t.Fatal(err)
				}
			}
			<-p.Context.Done()
			if err := context.Cause(p.Context); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			p.Leave(nil)
		})
	}
}

// A handler that releases its lock ends its own context. If it returns without an answer
// then, it may have given up because of that: nothing is sold, and what it did is unknown.
func TestExclusiveReleasedByTheHandler(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply *gate.Reply
		sold  int64
		state idempotency.State
	}{
		"no answer": {answered(200), 0, idempotency.Doubtful},
		"a body":    {&gate.Reply{Status: 200, Body: []byte("yours")}, 1, idempotency.Done},
		"a status":  {answered(204), 1, idempotency.Done},
	} {
		guard, _ := guardsOf(t, idempotency.Reject{}, idempotency.Options{})
		l, _ := locks(t, lock.Options{})
		s, _ := sale(t, 1)
		r := posting("k", "")
		r.route, r.params = "/orders/{item}", map[string]string{"item": "phone"}
		p := gate.Chain(
			gate.Idempotent(guard, everyone, nil), gate.Exclusive(l, everyone, nil), gate.Reserve(s, gate.ByParam("item"), everyone, nil),
		).Enter(r)
		held, ok := lock.FromContext(p.Context)
		if !ok {
			t.Fatalf("%s: got %+v, want it admitted with the lock", name, p.Reply)
		}
		if err := held.Release(p.Context); err != nil || p.Context.Err() == nil {
			t.Errorf("%s: Release: got %v, and the context's error %v, want no error, and the context ended", name, err, p.Context.Err())
		}
		p.Leave(c.reply)
		counts(t, s, 1-c.sold, 0, c.sold)
		if r, err := guard.Inspect(t.Context(), ordered); r.State != c.state || err != nil {
			t.Errorf("%s: got %+v, %v, want the state %v", name, r, err, c.state)
		}
	}
}

func TestExclusivePanics(t *testing.T) {
	t.Parallel()
	l, _ := locks(t, lock.Options{})
	for name, wire := range map[string]func(){
		"no locker": func() { gate.Exclusive(nil, everyone, nil) },
		"an owner":  func() { gate.Exclusive(l.As("me"), everyone, nil) },
		"no owner":  func() { gate.Exclusive(l.As(""), everyone, nil) },
		"no key":    func() { gate.Exclusive(l, nil, nil) },
		"Wait":      func() { gate.Exclusive(l, everyone, &gate.ExclusiveOptions{Wait: -1}) },
	} {
		if v, ok := panics(t, wire).(string); !ok || !strings.HasPrefix(v, "gate.Exclusive: ") || !strings.Contains(v, name[strings.LastIndex(name, " ")+1:]) {
			t.Errorf("%s: got the panic %v, want one that begins with gate.Exclusive and names what is wrong", name, v)
		}
	}
}

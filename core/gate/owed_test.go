package gate_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestRequestsThatEndWhileRedisIsStopped: a hundred requests have taken an estimate of 100
// of a month, and used 500 each. All end while Redis is stopped, for longer than the
// leases of their estimates. The month is charged what was used.
func TestRequestsThatEndWhileRedisIsStopped(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	st := storetest.At(t, srv.Client(t), srv.Prefix(t))
	month := limit.WithLease(limit.CalendarWindow{Limit: 100_000, Every: limit.Month, MaxDebt: 100_000}, 200*time.Millisecond)
	limiter := func(budget time.Duration) *limit.Limiter {
		l, err := limit.New(st, "tokens", []limit.Policy{month}, &limit.Options{Budget: budget, Fail: store.FailClosed})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	var told hook
	g := gate.RateLimit(limiter(3*time.Second), everyone, &gate.RateLimitOptions{
		OnError: told.hear,
		Cost:    func(gate.Request) (int64, error) { return 100, nil },
		Settle:  func(gate.Request, *gate.Reply) int64 { return 500 },
	})
	passes := make([]gate.Pass, 100)
	for i := range passes {
		if passes[i] = g.Enter(&request{}); passes[i].Reply != nil {
			t.Fatalf("request %d: got %+v, %v, want it admitted", i, passes[i].Reply, told.take())
		}
	}
	srv.Pause(t)
	var ended sync.WaitGroup
	for _, p := range passes {
		ended.Go(func() { p.Leave(answered(200)) })
	}
	ended.Wait()
	srv.Resume(t)
	patient := limiter(10 * time.Second)
	if d, err := patient.TakeN(t.Context(), "everyone", 100_000); err != nil {
		t.Fatal(err)
	} else if d.Allowed { // all estimates were taken back
		if err := d.Refund(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := st.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if got := used(t, patient); got != 50_000 {
		t.Errorf("got %d charged, want the 50,000 that were used", got)
	}
	if err := told.take(); err != nil {
		t.Errorf("the hook was told %v, want nothing", err)
	}
}

// TestTheHookIsToldWhatWasGivenUp: for five minutes after a call that may have run, Settle
// and Count are repeated without a word. Then the hook is told, with a request that can
// still be read and with what would have been charged.
func TestTheHookIsToldWhatWasGivenUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options gate.RateLimitOptions
		actual  int64
	}{
		"settle":                    {gate.RateLimitOptions{Settle: func(gate.Request, *gate.Reply) int64 { return 500 }}, 500},
		"count":                     {gate.RateLimitOptions{Count: gate.OnlyFailures}, 0},
		"settle, after the handler": {gate.RateLimitOptions{Settle: func(gate.Request, *gate.Reply) int64 { return 500 }, InContext: true}, 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &severed{Client: redistest.BubbleClient(t, bubbled(t))}
				st := storetest.At(t, s, "neap")
				l, err := limit.New(st, "tokens", []limit.Policy{limit.FixedWindow{Limit: 10_000, Window: time.Hour}}, &limit.Options{Fail: store.FailClosed})
				if err != nil {
					t.Fatal(err)
				}
				givesUp(t, l, st, s, c.options, c.actual)
			})
		})
	}
}

// bubbled is a miniredis that uses the clock of the bubble.
func bubbled(t *testing.T) *miniredis.Miniredis {
	t.Helper()
	m := redistest.Bubble(t)
	return m
}

// unsettling refuses the scripts that give back, and no other.
type unsettling struct{ script.Client }

func (u unsettling) Process(ctx context.Context, cmd redis.Cmder) error {
	if strings.Contains(fmt.Sprint(cmd.Args()...), "settled:") {
		return deadRedis{errNoPerm}.Process(ctx, cmd)
	}
	return u.Client.Process(ctx, cmd)
}

// TestRateLimitsTellWhatWasGivenUp: the hook of the gate that denies is told that what
// another had granted could not be given back, and again when that was given up.
func TestRateLimitsTellWhatWasGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := storetest.Direct(t, unsettling{redistest.BubbleClient(t, bubbled(t))}, "neap")
		var wide, narrow hook
		var paths []string
		limited := func(name string, most int64, told *hook) (*limit.Limiter, gate.RateLimitGate) {
			l, err := limit.New(st, name, []limit.Policy{limit.FixedWindow{Limit: most, Window: time.Hour}}, &limit.Options{Fail: store.FailClosed})
			if err != nil {
				t.Fatal(err)
			}
			return l, gate.RateLimit(l, everyone, &gate.RateLimitOptions{OnError: func(r gate.Request, err error) {
				paths = append(paths, r.Path())
				told.hear(r, err)
			}})
		}
		l, first := limited("wide", 100, &wide)
		_, second := limited("narrow", 1, &narrow)
		g := gate.RateLimits(first, second)
		g.Enter(&request{})
		r := &request{path: "/one"}
		if p := g.Enter(r); p.Reply == nil || p.Reply.Status != 429 {
			t.Fatalf("got %+v, want a 429", p.Reply)
		}
		*r = request{path: "/another"} // as a framework does
		if err := narrow.take(); !errors.Is(err, script.ErrConfiguration) {
			t.Errorf("at once: the hook was told %v, want that the permits are still taken", err)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		dropped, is := errors.AsType[*limit.DroppedError](narrow.take())
		if l.Stats().Dropped != 1 || !is || dropped.Taken != 1 || dropped.Actual != 0 || dropped.Subject != "everyone" {
			t.Errorf("ten minutes later: the hook was told %+v, want a DroppedError of one permit; %d are dropped", dropped, l.Stats().Dropped)
		}
		if want := []string{"/one", "/one"}; !slices.Equal(paths, want) {
			t.Errorf("the hook was told of the requests for %q, want %q", paths, want)
		}
		if err := wide.take(); err != nil {
			t.Errorf("the hook of the gate that granted was told %v, want nothing", err)
		}
	})
}

func givesUp(t *testing.T, l *limit.Limiter, st *store.Store, s *severed, options gate.RateLimitOptions, actual int64) {
	t.Helper()
	type told struct {
		r   gate.Request
		err error
	}
	var heard []told
	options.Cost = func(gate.Request) (int64, error) { return 100, nil }
	options.OnError = func(r gate.Request, err error) { heard = append(heard, told{r, err}) }
	r := &request{
		ctx:    context.WithValue(context.Background(), userKey(1), "alice"),
		method: "POST", host: "example.com", path: "/login", query: "a=1", route: "/{page}",
		params: map[string]string{"page": "login"}, header: map[string][]string{"X-Api-Key": {"k"}},
	}
	g := gate.RateLimit(l, everyone, &options)
	g.Enter(&request{}).Leave(answered(200)) // tells the limiter the time of Redis
	p, late := g.Enter(r), g.Enter(&request{})
	s.gone.Store(true)
	if options.InContext { // the handler settles by itself
		d, _ := limit.FromContext(p.Context)
		if _, err := d.Settle(p.Context, actual); err == nil {
			t.Error("Settle without Redis: got no error, want one")
		}
	}
	*r = request{path: "/another"} // as a framework does
	p.Leave(answered(200))
	time.Sleep(4 * time.Minute)
	if len(heard) != 0 || l.Stats().Concluding != 1 {
		t.Errorf("after 4 minutes: the hook was told %v with stats %+v, want nothing, and one that is repeated", heard, l.Stats())
	}
	time.Sleep(3 * time.Minute)
	synctest.Wait()
	if got := l.Stats(); got.Dropped != 1 || got.Concluding != 0 {
		t.Errorf("after 7 minutes: got stats %+v, want one dropped", got)
	}
	late.Leave(answered(200))
	s.gone.Store(false)
	if err := st.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if got := used(t, l); got != 100+2*actual {
		t.Errorf("at last: got %d used, want %d: the estimate of the one that was given up, and what the two others used", got, 100+2*actual)
	}
	if len(heard) != 1 {
		t.Fatalf("the hook was told %v, want one error", heard)
	}
	dropped, is := errors.AsType[*limit.DroppedError](heard[0].err)
	if !is || !errors.Is(dropped, script.ErrConfiguration) || dropped.Taken != 100 || dropped.Actual != actual || dropped.Subject != "everyone" {
		t.Fatalf("the hook was told %v, want a DroppedError of 100 that should have been %d", heard, actual)
	}
	q := heard[0].r
	if q.Method() != "POST" || q.Host() != "example.com" || q.Path() != "/login" || q.RawQuery() != "a=1" ||
		q.Route() != "/{page}" || q.Value(userKey(1)) != "alice" || q.Context().Value(userKey(1)) != "alice" || q.RemoteAddr() != r.peer {
		t.Errorf("the hook was given the request %+v, want that of POST example.com/login?a=1 by alice", q)
	}
	for range q.Headers() {
		t.Error("the hook's request still has header fields, want none")
	}
	if _, err := q.Body(1); err != gate.ErrBodyConsumed || q.Param("page") != "" || q.Header("X-Api-Key") != nil {
		t.Errorf("the hook's request: got the body error %v, page %q and X-Api-Key %q, want %v and neither",
			err, q.Param("page"), q.Header("X-Api-Key"), gate.ErrBodyConsumed)
	}
}

// TestARefundWithoutAHook fails silently.
func TestARefundWithoutAHook(t *testing.T) {
	t.Parallel()
	l, s := mortal(t, 3, store.FailClosed)
	p := gate.RateLimit(l, everyone, &gate.RateLimitOptions{Count: gate.OnlyFailures}).Enter(&request{})
	s.gone.Store(true)
	p.Leave(answered(200))
	if got := l.Stats(); got.Concluding != 1 {
		t.Errorf("got stats %+v, want a refund that is repeated", got)
	}
	s.gone.Store(false)
	redistest.Await(t, time.Minute, "the refund", func() bool { return used(t, l) == 0 })
}

// TestASettleThatPanics costs what was estimated, as one that returns a negative number: a
// lease gives nothing back.
func TestASettleThatPanics(t *testing.T) {
	t.Parallel()
	for name, settle := range map[string]func(gate.Request, *gate.Reply) int64{
		"panics":   func(gate.Request, *gate.Reply) int64 { panic("of Settle") },
		"negative": func(gate.Request, *gate.Reply) int64 { return -1 },
	} {
		synctest.Test(t, func(t *testing.T) {
			m := redistest.Bubble(t)
			st := storetest.At(t, redistest.BubbleClient(t, m), "neap")
			l, err := limit.New(st, "tokens", []limit.Policy{limit.WithLease(limit.FixedWindow{Limit: 10_000, Window: time.Hour}, time.Minute)}, &limit.Options{Fail: store.FailClosed})
			if err != nil {
				t.Fatal(err)
			}
			func() {
				p := gate.RateLimit(l, everyone, &gate.RateLimitOptions{
					Cost: func(gate.Request) (int64, error) { return 100, nil }, Settle: settle,
				}).Enter(&request{})
				defer func() { _ = recover() }()
				p.Leave(answered(200))
			}()
			runtime.GC() // or else what is forgotten would be renewed
			time.Sleep(10 * time.Minute)
			if d, err := l.TakeN(t.Context(), "everyone", 10_000); err != nil || d.Allowed {
				t.Errorf("%s: a request of the whole limit: got %+v, %v, want a denial", name, d, err)
			}
			if got := used(t, l); got != 100 {
				t.Errorf("%s: got %d used, want the estimate of 100", name, got)
			}
		})
	}
}

package gate_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
)

// TestWaits: requests are admitted in their order. Those that cannot be admitted in time
// are denied immediately. A request whose client goes away leaves its place to the
// others.
func TestWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter := local(t, limit.TokenBucket{Name: "queue", Rate: 2, Per: time.Second, Burst: 1})
		g := gate.RateLimit(limiter, everyone, &gate.RateLimitOptions{Wait: 2 * time.Second})
		gone, leave := context.WithCancel(t.Context())
		defer leave()
		var all sync.WaitGroup
		for i, want := range []struct {
			status int
			after  time.Duration
		}{{0, 0}, {0, 500}, {503, 100}, {0, 1000}, {0, 1500}, {429, 0}, {429, 0}, {0, 1900}} {
			ctx := t.Context()
			if i == 2 {
				ctx = gone
			}
			if i == 7 { // the third has left a place by now
				time.Sleep(100 * time.Millisecond)
				leave()
				synctest.Wait()
			}
			all.Go(func() {
				began := time.Now()
				status, reply := 0, g.Enter(&request{ctx: ctx}).Reply
				if reply != nil {
					status = reply.Status
				}
				if took := time.Since(began).Round(time.Millisecond); status != want.status || took != want.after*time.Millisecond {
					t.Errorf("request %d: got %d after %v, want %d after %d ms", i, status, took, want.status, want.after)
				}
				if status == 429 && fmt.Sprint(lines(reply.Header, "Retry-After")) != "[3]" {
					t.Errorf("request %d: got Retry-After %v, want 3: 2.5 s behind those that wait", i, lines(reply.Header, "Retry-After"))
				}
			})
			synctest.Wait()
		}
		all.Wait()
	})
}

// TestWaitQueueIsFull: if MaxWaiting requests wait, the next one is denied. Its
// Retry-After is the longest time that the queue can last.
func TestWaitQueueIsFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter, err := limit.NewLocal("test", []limit.Policy{limit.FixedWindow{Limit: 1, Window: 9 * time.Second}}, &limit.Options{MaxWaiting: 1})
		if err != nil {
			t.Fatal(err)
		}
		var told hook
		g := gate.RateLimit(limiter, everyone, &gate.RateLimitOptions{Wait: 10 * time.Second, OnError: told.hear})
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if p := g.Enter(&request{}); p.Reply != nil {
					t.Errorf("a request with a place: got %d, want it admitted", p.Reply.Status)
				}
			})
			synctest.Wait()
		}
		p := g.Enter(&request{})
		if p.Reply == nil || p.Reply.Status != 429 || fmt.Sprint(lines(p.Reply.Header, "Retry-After")) != "[10]" || len(told.errs) > 0 {
			t.Errorf("a request without a place: got %+v, and %v for the hook, want a 429 with Retry-After 10", p.Reply, told.errs)
		}
		all.Wait()
	})
}

func TestANegativeWaitPanics(t *testing.T) {
	t.Parallel()
	got := fmt.Sprint(panics(t, func() { gate.RateLimit(hourly(t, 1), everyone, &gate.RateLimitOptions{Wait: -1}) }))
	if !strings.Contains(got, "RateLimitOptions.Wait is -1ns: use") {
		t.Errorf("got the panic %q, want one that names the field and the remedy", got)
	}
}

// TestWaitsForASettlement: while a request of the subject runs, another one waits for it
// to settle, even if the window lasts longer. A request that is not served is denied when
// its Wait has passed, or immediately if none runs.
func TestWaitsForASettlement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gate.RateLimit(local(t, limit.FixedWindow{Limit: 100, Window: time.Hour}), everyone, &gate.RateLimitOptions{
			Wait:   2 * time.Second,
			Cost:   func(gate.Request) (int64, error) { return 60, nil },
			Settle: func(gate.Request, *gate.Reply) int64 { return 20 },
		})
		var all sync.WaitGroup
		for i, want := range []struct {
			comes  time.Duration
			status int
			after  time.Duration
		}{{0, 0, 0}, {0, 0, 1500}, {0, 429, 2000}, {2500, 0, 500}, {5000, 429, 0}, {5001, 429, 0}} { // of two at once, one would wait for the other
			all.Go(func() {
				time.Sleep(want.comes * time.Millisecond)
				began := time.Now()
				p := g.Enter(&request{})
				status := 0
				if p.Reply != nil {
					status = p.Reply.Status
				}
				if took := time.Since(began).Round(time.Millisecond); status != want.status || took != want.after*time.Millisecond {
					t.Errorf("request %d: got %d after %v, want %d after %d ms", i, status, took, want.status, want.after)
				}
				rest := fmt.Sprint("[", 3600-int(want.comes+want.after)/1000, "]")
				if status == 429 && fmt.Sprint(lines(p.Reply.Header, "Retry-After")) != rest {
					t.Errorf("request %d: got Retry-After %v, want %s: the rest of the window", i, lines(p.Reply.Header, "Retry-After"), rest)
				}
				if p.Leave != nil {
					time.Sleep(1500 * time.Millisecond)
					p.Leave(answered(200))
				}
			})
			synctest.Wait()
		}
		all.Wait()
	})
}

// TestWaitQueueIsFullWithSettle: if MaxWaiting requests wait, a request for which there
// is room is still admitted.
func TestWaitQueueIsFullWithSettle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter, err := limit.NewLocal("test", []limit.Policy{limit.FixedWindow{Limit: 2, Window: time.Hour}}, &limit.Options{MaxWaiting: 1})
		if err != nil {
			t.Fatal(err)
		}
		g := gate.RateLimit(limiter, gate.ByHeader("X-Api-Key"), &gate.RateLimitOptions{
			Wait:   2 * time.Second,
			Settle: func(gate.Request, *gate.Reply) int64 { return 1 },
		})
		status := func(key string) int {
			if p := g.Enter(with("X-Api-Key", key)); p.Reply != nil {
				return p.Reply.Status
			}
			return 0
		}
		got := []int{status("ann"), status("ann"), status("bob")}
		var waits sync.WaitGroup
		waits.Go(func() {
			if got := status("ann"); got != 429 {
				t.Errorf("the one that waits: got %d, want a 429 in the end", got)
			}
		})
		synctest.Wait()
		if got = append(got, status("bob"), status("bob")); fmt.Sprint(got) != "[0 0 0 0 429]" {
			t.Errorf("got %v, want two of each admitted", got)
		}
		waits.Wait()
	})
}

// TestWaitsForNoRequestThatDidNotRun: if OnError panics at a decision without Redis, the
// request ends. So the next request of the subject is denied immediately, and does not
// wait for that one to settle.
func TestWaitsForNoRequestThatDidNotRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter, err := limit.New(deadRedis{errNoPerm}, "test", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		breaks := true
		g := gate.RateLimit(limiter, everyone, &gate.RateLimitOptions{
			Wait:   2 * time.Second,
			Settle: func(gate.Request, *gate.Reply) int64 { return 1 },
			OnError: func(gate.Request, error) {
				if breaks {
					panic("a broken hook")
				}
			},
		})
		if got := panics(t, func() { g.Enter(&request{}) }); got != "a broken hook" {
			t.Fatalf("got the panic %v, want that of the hook", got)
		}
		breaks = false
		began := time.Now()
		p := g.Enter(&request{})
		if p.Reply == nil || p.Reply.Status != 429 || time.Since(began) != 0 {
			t.Errorf("a request after it: got refused %t after %v, want a 429 at once", p.Reply != nil, time.Since(began))
		}
	})
}

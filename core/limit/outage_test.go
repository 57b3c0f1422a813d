package limit_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// swallowing returns an address whose packets get no answer: a listener that accepts no
// connection and whose queue is full.
func swallowing(t *testing.T) string {
	t.Helper()
	fd := must(syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0))(t)
	t.Cleanup(func() { syscall.Close(fd) })
	here := &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if err := errors.Join(syscall.Bind(fd, here), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name := must(syscall.Getsockname(fd))(t)
	addr := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for range 1000 { // two will do on Linux, others have a queue of hundreds
		c, err := net.DialTimeout("tcp", addr, 200*time.Millisecond)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Fatal("connections: got 1000 accepted, want the listener's queue full before that")
	return ""
}

// TestBoundedTime measures how long a decision takes while Redis does not answer, with
// go-redis' default options, and how long plain go-redis takes.
func TestBoundedTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		addr  func(t *testing.T) string
		hangs bool // plain go-redis for 5 s at least
	}{
		"stopped by SIGSTOP": {func(t *testing.T) string {
			srv := redistest.NewStandalone(t)
			srv.Pause(t)
			return srv.Addr()
		}, true},
		"refused port":       {refused, false},
		"swallowing address": {swallowing, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := c.addr(t)
			connect := func() *redis.Client {
				rdb := redis.NewClient(&redis.Options{Addr: addr})
				t.Cleanup(func() { rdb.Close() })
				return rdb
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				began, done := time.Now(), make(chan error, 1)
				rdb := connect()
				go func() { done <- rdb.Eval(t.Context(), "return 1", []string{"k"}).Err() }()
				select {
				case err := <-done:
					t.Logf("plain go-redis took %v: %v", time.Since(began), err)
					if err == nil || c.hangs {
						t.Errorf("plain go-redis took %v: got %v, want an error, or to hang for 5s (%t)",
							time.Since(began), err, c.hangs)
					}
				case <-time.After(5 * time.Second):
					t.Log("plain go-redis took more than 5 s")
				}
			})
			for _, mode := range modes {
				wg.Go(func() { decidesInTime(t, connect(), mode) })
			}
			cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}}) // has heard of no node
			t.Cleanup(func() { cluster.Close() })
			wg.Go(func() { decidesInTime(t, cluster, store.FailLocal) })
			wg.Wait()
		})
	}
}

// openFor is how long an open breaker lets no call through.
const openFor = 250 * time.Millisecond

// decidesInTime asks more often than it takes to open the breaker.
func decidesInTime(t *testing.T, rdb script.Client, mode store.FailMode) {
	l, err := limit.New(rdb, "bounded", []limit.Policy{limit.FixedWindow{Limit: 5, Window: time.Hour}}, &limit.Options{Fail: mode})
	if err != nil {
		t.Error(err)
		return
	}
	stood := redistest.Witness(t)
	for i := range 25 {
		began := time.Now()
		d, err := l.Take(t.Context(), "s")
		if took := time.Since(began); took >= 2*time.Second+stood() {
			t.Errorf("%v: decision %d: got it after %v, want it below 2s and the %v that the machine stood still",
				mode, i, took, stood())
		}
		var failure *script.Error
		switch {
		case mode == store.FailClosed && !errors.As(err, &failure):
			t.Errorf("%v: decision %d: got %+v, %v, want a script.Error", mode, i, d, err)
		case mode == store.FailClosed:
		case err != nil || !d.Degraded || !errors.As(d.Cause, &failure):
			t.Errorf("%v: decision %d: got %+v, %v, want it degraded with a script.Error as its Cause",
				mode, i, d, err)
		case d.Allowed != (mode == store.FailOpen || i < 5):
			t.Errorf("%v: decision %d: got %+v, want allowed %t", mode, i, d, mode == store.FailOpen || i < 5)
		}
	}
	// A breaker that was open for long lets a call through. On a slow machine, one caller has
	// too few failures in the time for which they count.
	for n := 0; n < 100 && !l.Stats().Open; n++ {
		var callers sync.WaitGroup
		for range 10 {
			callers.Go(func() { _, _ = l.Take(t.Context(), "s") })
		}
		callers.Wait()
	}
	if s := l.Stats(); !s.Open || mode == store.FailClosed && s.Failed == 0 || mode != store.FailClosed && s.Degraded == 0 {
		t.Errorf("%v: got stats %+v, want an open breaker, and some failed under FailClosed and else degraded",
			mode, s)
	}
}

// TestAnOpenBreakerSendsNothing counts what reaches the server, and the connections that
// are tried. For each call that an open breaker lets through, the store also connects
// once.
func TestAnOpenBreakerSendsNothing(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	proxy := srv.Proxy(t)
	var dials atomic.Int64
	rdb := srv.Client(t, func(o *redis.Options) {
		o.ContextTimeoutEnabled = true
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return proxy.Dial(ctx, network, addr)
		}
	})
	l := must(limit.New(storetest.At(t, rdb, srv.Prefix(t)), "open", []limit.Policy{limit.FixedWindow{Limit: 5, Window: time.Hour}}, nil))(t)
	if err := l.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	proxy.Lose(redistest.Silence, -1, "evalsha", "eval", "hello")
	sent := func() int64 {
		return int64(proxy.Forwarded("evalsha")+proxy.Forwarded("eval")+proxy.Forwarded("hello")) + dials.Load()
	}
	ask := func() {
		if d, err := l.Take(t.Context(), "s"); err != nil || !d.Degraded {
			t.Fatalf("a take without replies: got %+v, %v, want it degraded", d, err)
		}
	}
	redistest.Await(t, 30*time.Second, "the breaker", func() bool {
		ask()
		return l.Stats().Open
	})
	// A series of calls that ends within the quarter of a second contains no probe.
	leaks := 0
	for range 200 {
		before, began := sent(), time.Now()
		ask() // may be the probe, after which a quarter second is quiet
		quiet := sent()
		for range 100 {
			ask()
		}
		const beside = 2 // a dial and a greeting
		took := time.Since(began)
		switch {
		case took >= openFor:
		case sent()-quiet <= beside:
			t.Logf("100 decisions in %v; the call before them sent %d", took, quiet-before)
			return
		default:
			if leaks++; leaks == 5 {
				t.Fatalf("100 decisions behind an open breaker: got %d calls sent in the fifth such run, want at most %d", sent()-quiet, beside)
			}
		}
	}
	t.Errorf("100 decisions behind an open breaker: got none of 200 runs within %v that sent nothing, want one", openFor)
}

// TestRecoversByItself pauses the server and then resumes it.
func TestRecoversByItself(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	l := must(limit.New(storetest.At(t, srv.Client(t), srv.Prefix(t)), "recovers",
		[]limit.Policy{limit.FixedWindow{Limit: 1e6, Window: time.Hour}}, nil))(t)
	if err := l.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv.Pause(t)
	redistest.Await(t, 30*time.Second, "the breaker", func() bool {
		if d, err := l.Take(t.Context(), "s"); err != nil || !d.Degraded {
			t.Fatalf("a take from a paused server: got %+v, %v, want it degraded", d, err)
		}
		return l.Stats().Open
	})
	srv.Resume(t)
	redistest.Await(t, time.Minute, "a decision by Redis", func() bool {
		return !must(l.Take(t.Context(), "s"))(t).Degraded
	})
	if l.Stats().Open {
		t.Error("got an open breaker after a decision by Redis, want it closed")
	}
}

// TestNoGoroutineIsLeft is about calls that a client without ContextTimeoutEnabled
// continues after their budget. It is not parallel, because it looks at every goroutine
// of the process.
func TestNoGoroutineIsLeft(t *testing.T) { //nolint:paralleltest // as said
	srv := redistest.NewStandalone(t)
	rdb := srv.Client(t, func(o *redis.Options) { o.ReadTimeout = 5 * time.Second }) // after all callers have left
	l := must(limit.New(storetest.At(t, rdb, srv.Prefix(t)), "left", []limit.Policy{limit.FixedWindow{Limit: 5, Window: time.Hour}}, nil))(t)
	if err := l.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv.Pause(t)
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if d, err := l.Take(t.Context(), "s"); err != nil || !d.Degraded {
				t.Errorf("a take from a paused server: got %+v, %v, want it degraded", d, err)
			}
		})
	}
	wg.Wait()
	stacks := make([]byte, 16<<20) // once: the race detector writes four times as much for each
	calls := func() int {
		text := string(stacks[:runtime.Stack(stacks, true)])
		return strings.Count(text, "core/internal/call.(*Client).process") + strings.Count(text, "queue.(*Queue).sendBatches")
	}
	if calls() == 0 {
		t.Error("got no call left behind, want some: this test is about them")
	}
	redistest.Await(t, 30*time.Second, "the calls left behind", func() bool { return calls() == 0 })
}

// TestADeadMasterDoesNotAffectTheOthers stops one of three masters.
func TestADeadMasterDoesNotAffectTheOthers(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*redistest.Server){
		"paused": func(s *redistest.Server) { s.Pause(t) },
		"killed": func(s *redistest.Server) { s.Stop(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := redistest.NewCluster(t, "--cluster-require-full-coverage", "no")
			prefix := cluster.Prefix(t)
			rdb := cluster.Client(t)
			l := must(limit.New(storetest.At(t, rdb, prefix), "shard", []limit.Policy{limit.FixedWindow{Limit: 1e6, Window: time.Hour}},
				&limit.Options{Budget: 250 * time.Millisecond}))(t) // a busy machine is no dead master
			if err := l.Warm(t.Context()); err != nil {
				t.Fatal(err)
			}
			dead := cluster.Nodes()[1]
			var gone, there []string
			for i := range 300 {
				subject := fmt.Sprint("s", i)
				if cluster.NodeOf(t, prefix+":limit:shard:{"+subject+"}") == dead {
					gone = append(gone, subject)
				} else {
					there = append(there, subject)
				}
			}
			stop(dead)
			for _, subject := range gone {
				if d, err := l.Take(t.Context(), subject); err != nil || !d.Degraded {
					t.Fatalf("a take by %s, whose master is gone: got %+v, %v, want it degraded", subject, d, err)
				}
			}
			degraded := 0
			for _, subject := range there {
				if d := must(l.Take(t.Context(), subject))(t); d.Degraded {
					t.Logf("a take by %s: got %v, want no error", subject, d.Cause)
					degraded++
				}
			}
			if degraded > len(there)/10 { // a busy machine degrades some; a dead master that affected the others would degrade most
				t.Errorf("got %d of %d decisions of the other masters degraded, want a tenth at most", degraded, len(there))
			}
			if !l.Stats().Open {
				t.Error("breakers: got none open, want that of the dead master")
			}
		})
	}
}

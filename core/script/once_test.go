package script_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// TestLostReplyExecutesOnce loses the reply of every call after the server ran it. neap
// runs each call exactly once and says that it does not know. Plain go-redis with the
// same options runs it again.
func TestLostReplyExecutesOnce(t *testing.T) {
	t.Parallel()
	faults := map[string]redistest.Fault{
		"eof": redistest.EOF, "reset": redistest.Reset, "silence": redistest.Silence,
	}
	for _, contextTimeouts := range []bool{false, true} {
		for name, fault := range faults {
			for _, f := range fronts(t, contextTimeouts) {
				t.Run(fmt.Sprintf("%s/%s/ContextTimeoutEnabled=%v", f.name, name, contextTimeouts), func(t *testing.T) {
					t.Parallel()
					budget := 10 * time.Second
					if fault == redistest.Silence {
						budget = 5 * time.Second // what each call then takes
					}
					r := newRunner(t, f.rdb, &script.Options{Budget: budget})
					key := redistest.Prefix(t)
					// The first call connects and loads the script.
					redistest.Await(t, 20*time.Second, "a first call", func() bool {
						_, err := r.Run(t.Context(), count, []string{key}, 0)
						return err == nil
					})
					f.proxy.Lose(fault, 1_000_000, "evalsha", "eval")
					const calls = 5
					for range calls {
						_, err := r.Run(t.Context(), count, []string{key}, 1)
						if !errors.Is(err, script.ErrMaybeExecuted) {
							t.Errorf("a call whose reply was lost: got %v, want ErrMaybeExecuted", err)
						}
					}
					f.proxy.Lose(fault, 0)
					if n, err := f.rdb.Get(t.Context(), key).Int(); err != nil || n != calls {
						t.Errorf("%d calls: got %d runs (%v), want one each", calls, n, err)
					}
					if fault == redistest.Silence {
						return // plain go-redis would wait for 3 s each time
					}
					f.proxy.Lose(fault, 1_000_000, "eval")
					_ = f.rdb.Eval(t.Context(), count.Source(), []string{key}, 1).Err()
					f.proxy.Lose(fault, 0)
					if n, err := f.rdb.Get(t.Context(), key).Int(); err != nil || n < calls+2 {
						t.Errorf("plain go-redis: got %d runs (%v), want at least 2: that shows the fault",
							n-calls, err)
					}
				})
			}
		}
	}
}

// TestScriptFlushIsNotSeen empties the script cache with every 25th call under load, on
// servers of its own.
func TestScriptFlushIsNotSeen(t *testing.T) {
	t.Parallel()
	srv, cl := redistest.NewStandalone(t), redistest.NewCluster(t)
	for name, c := range map[string]struct{ rdb, admin redis.UniversalClient }{
		"standalone": {srv.Client(t), srv.Admin(t)},
		"cluster":    {cl.Client(t), cl.Admin(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := redistest.Prefix(t)
			r := newRunner(t, c.rdb, &script.Options{Budget: 10 * time.Second})
			const callers = 8
			each := max(redistest.Ops(20_000)/callers, 1)
			var load sync.WaitGroup
			for range callers {
				load.Go(func() {
					for i := range each {
						if i%25 == 0 {
							if err := c.admin.ScriptFlush(t.Context()).Err(); err != nil {
								t.Error(err)
							}
						}
						if _, err := r.Run(t.Context(), count, []string{key}, 1); err != nil {
							t.Errorf("call %d: got %v, want no error", i, err)
							return
						}
					}
				})
			}
			load.Wait()
			calls := callers * each
			if n, err := c.rdb.Get(t.Context(), key).Int(); err != nil || n != calls {
				t.Errorf("%d calls: got %d runs (%v), want one each", calls, n, err)
			}
		})
	}
}

// TestRestartCostsOneRoundTrip restarts the server, which empties its script
// cache, and then calls once: EVALSHA, NOSCRIPT, EVAL.
func TestRestartCostsOneRoundTrip(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	proxy := srv.Proxy(t)
	rdb := srv.Client(t, func(o *redis.Options) { o.Dialer = proxy.Dial })
	r := newRunner(t, rdb, &script.Options{Budget: 5 * time.Second})
	key := srv.Prefix(t)
	for range 3 {
		if _, err := r.Run(t.Context(), count, []string{key}, 1); err != nil {
			t.Fatal(err)
		}
	}
	srv.Stop(t)
	srv.Start(t)
	sha, eval := proxy.Forwarded("evalsha"), proxy.Forwarded("eval")
	n, err := r.Run(t.Context(), count, []string{key}, 1)
	if err != nil || n != int64(1) {
		t.Errorf("the first call after a restart: got %v, %v, want 1", n, err)
	}
	if sha, eval = proxy.Forwarded("evalsha")-sha, proxy.Forwarded("eval")-eval; sha != 1 || eval != 1 {
		t.Errorf("the first call after a restart: got %d EVALSHA and %d EVAL sent, want one of each", sha, eval)
	}
}

// TestEveryClientRunsOnce: each kind of client, whose way to the server differs, runs a
// call once with its default options.
func TestEveryClientRunsOnce(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	for name, connect := range map[string]func(dial func(context.Context, string, string) (net.Conn, error)) script.Client{
		"ring": func(dial func(context.Context, string, string) (net.Conn, error)) script.Client {
			ring := redis.NewRing(&redis.RingOptions{
				Addrs: map[string]string{"one": srv.Addr()}, Dialer: dial,
				Username: redistest.User, Password: redistest.Password,
			})
			t.Cleanup(func() { ring.Close() })
			return ring
		},
		"auto-pipeline": func(dial func(context.Context, string, string) (net.Conn, error)) script.Client {
			pipe, err := srv.Client(t, func(o *redis.Options) { o.Dialer = dial }).AutoPipeline()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { pipe.Close() })
			return pipe
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := srv.Proxy(t)
			r := newRunner(t, connect(proxy.Dial), &script.Options{Budget: 10 * time.Second})
			key := srv.Prefix(t)
			for i := range 3 {
				if n, err := r.Run(t.Context(), count, []string{key}, 1); err != nil || n != int64(i+1) {
					t.Fatalf("call %d: got %v, %v, want %d", i, n, err, i+1)
				}
			}
			proxy.Lose(redistest.EOF, 1, "evalsha")
			if _, err := r.Run(t.Context(), count, []string{key}, 1); !errors.Is(err, script.ErrMaybeExecuted) {
				t.Errorf("a call whose reply was lost: got %v, want ErrMaybeExecuted", err)
			}
			if n, err := srv.Client(t).Get(t.Context(), key).Int(); err != nil || n != 4 {
				t.Errorf("4 calls: got %d runs (%v), want one each", n, err)
			}
		})
	}
}

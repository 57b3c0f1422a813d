package script_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

func TestUnusableClientsAreRefused(t *testing.T) {
	t.Parallel()
	var none *redis.Client
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { rdb.Close() })
	for name, client := range map[string]script.Client{
		"nil":         nil,
		"typed nil":   none,
		"pipeline":    rdb.Pipeline(),
		"tx pipeline": rdb.TxPipeline(),
		"transaction": &redis.Tx{},
	} {
		if _, err := script.NewRunner(client, nil); !errors.Is(err, script.ErrClient) || !strings.Contains(err.Error(), "pass ") {
			t.Errorf("NewRunner with a client that is %s: got %v, want ErrClient with a remedy", name, err)
		}
	}
	for _, budget := range []time.Duration{-1, 250, time.Millisecond - 1} {
		_, err := script.NewRunner(rdb, &script.Options{Budget: budget})
		if err == nil || !strings.Contains(err.Error(), "use at least a millisecond") {
			t.Errorf("NewRunner with a budget of %v: got %v, want an error that says the least", budget, err)
		}
	}
}

func TestKeysMustShareAHashTag(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		r := newRunner(t, rdb, &script.Options{Budget: 10 * time.Second})
		for name, keys := range map[string][]string{
			"none":          {},
			"two plain":     {prefix + "a", prefix + "b"},
			"two tags":      {prefix + "{a}", prefix + "{b}"},
			"an empty tag":  {prefix + "{}a", prefix + "{}b"},
			"an open brace": {prefix + "{a", prefix + "{a}"},
		} {
			_, err := r.Run(t.Context(), count, keys, 1)
			if !errors.Is(err, script.ErrConfiguration) {
				t.Errorf("%s: got %v, want ErrConfiguration", name, err)
			}
			for _, key := range keys {
				if n := admin.Exists(t.Context(), key).Val(); n != 0 {
					t.Errorf("%s: got the key %s, want none: the script ran", name, key)
				}
			}
		}
		two := script.New("two.lua", `return #KEYS`)
		if n, err := r.Run(t.Context(), two, []string{prefix + "{a}x", prefix + "{a}y{b}"}); err != nil || n != int64(2) {
			t.Errorf("two keys with one tag: got %v, %v, want 2", n, err)
		}
	})
}

func TestRepliesAndErrors(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		r := newRunner(t, rdb, &script.Options{Budget: 5 * time.Second})
		keys := []string{prefix}
		if v, err := r.Run(t.Context(), script.New("nil.lua", "return nil"), keys); v != nil || err != nil {
			t.Errorf("nil.lua: got %v, %v, want nil and no error", v, err)
		}
		if v, err := r.Run(t.Context(), script.New("list.lua", "return {1, 'a'}"), keys); err != nil {
			t.Errorf("list.lua: got %v, %v, want no error", v, err)
		} else if list := v.([]any); list[0] != int64(1) || list[1] != "a" {
			t.Errorf("list.lua: got %v, want [1 a]", list)
		}
		_, err := r.Run(t.Context(), script.New("bad.lua", "local a = 1\nreturn a + nil"), keys)
		var failure *script.Error
		if !errors.As(err, &failure) || !errors.Is(err, script.ErrFailed) || failure.Script != "bad.lua" {
			t.Fatalf("bad.lua: got %v, want ErrFailed of bad.lua", err)
		}
		if _, mini := rdb.(*redis.Client); mini && !strings.Contains(err.Error(), "bad.lua:2") && !isMini(t, admin) {
			t.Errorf("bad.lua: got %v, want bad.lua:2 in it", err)
		}
	})
}

func isMini(t *testing.T, admin redis.UniversalClient) bool {
	t.Helper()
	return admin.ConfigGet(t.Context(), "port").Err() != nil
}

// TestRefusalsAreRetriedWithinTheBudget has the server refuse with an error that proves
// that nothing ran, and then accept.
func TestRefusalsAreRetriedWithinTheBudget(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	rdb, admin := srv.Client(t), srv.Admin(t)
	r := newRunner(t, rdb, &script.Options{Budget: time.Minute})
	key := srv.Prefix(t)
	ctx := t.Context()
	if err := admin.Do(ctx, "replicaof", "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	short := newRunner(t, rdb, &script.Options{Budget: 250 * time.Millisecond})
	redistest.Await(t, 30*time.Second, "a replica that stays one to be reported", func() bool {
		_, err := short.Run(ctx, count, []string{key}, 1)
		return errors.Is(err, script.ErrNotExecuted) // unless the budget ends with an attempt on its way
	})
	done := make(chan error, 1)
	go func() {
		_, err := r.Run(ctx, count, []string{key}, 1)
		done <- err
	}()
	sent := func() int64 {
		stats := redistest.CommandStats(t, admin)
		return stats["eval"].Calls + stats["evalsha"].Calls
	}
	before := sent()
	redistest.Await(t, 30*time.Second, "a refused attempt", func() bool { return sent() > before+2 })
	if err := admin.Do(ctx, "replicaof", "no", "one").Err(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("a call after the server has relented: got %v, want no error", err)
	}
	if n, err := rdb.Get(ctx, key).Int(); err != nil || n != 1 {
		t.Errorf("the call: got %d runs (%v), want one", n, err)
	}
}

func TestCredentialsAreNotRetried(t *testing.T) {
	t.Parallel()
	rdb := &attempts{Client: redistest.Standalone(t).Client(t, func(o *redis.Options) { o.Password = "wrong" })}
	_, err := newRunner(t, rdb, &script.Options{Budget: time.Minute}).Run(t.Context(), count, []string{"k"}, 1)
	if n := rdb.n.Load(); !errors.Is(err, script.ErrConfiguration) || n != 1 {
		t.Errorf("a wrong password: got %v after %d attempts, want ErrConfiguration after 1", err, n)
	}
}

// attempts counts the commands that a client is given.
type attempts struct {
	script.Client

	n atomic.Int32
}

func (a *attempts) Process(ctx context.Context, cmd redis.Cmder) error {
	a.n.Add(1)
	return a.Client.Process(ctx, cmd)
}

// TestBudgetBounds calls a server that accepts and never answers, a port that refuses,
// and a pool whose only connection is taken, with clients with and without
// ContextTimeoutEnabled. Without the budget, go-redis' own time-outs of 3 to 10 seconds
// would end the call, or none if ReadTimeout is -2. If no connection was found for a command, it is known not to have
// run.
func TestBudgetBounds(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	srv := redistest.NewStandalone(t)
	for _, contextTimeouts := range []bool{false, true} {
		connect := func(addr string, read time.Duration) *redis.Client {
			rdb := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1, ContextTimeoutEnabled: contextTimeouts, ReadTimeout: read})
			t.Cleanup(func() { rdb.Close() })
			return rdb
		}
		busy := connect(srv.Addr(), 0)
		taken := busy.Conn()
		if err := taken.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { taken.Close() })
		for name, rdb := range map[string]*redis.Client{
			"silent": connect(l.Addr().String(), 0), "silent, ReadTimeout -2": connect(l.Addr().String(), -2),
			"refused": connect("127.0.0.1:1", 0), "busy pool": busy,
		} {
			r := newRunner(t, rdb, &script.Options{Budget: time.Second})
			began := time.Now()
			_, err := r.Run(t.Context(), count, []string{"k"}, 1)
			if took := time.Since(began); took > 10*time.Second || !errors.Is(err, script.ErrNotExecuted) {
				t.Errorf("%s, ContextTimeoutEnabled %v: got %v after %v, want ErrNotExecuted within 10s",
					name, contextTimeouts, err, took)
			}
		}
	}
}

// TestWhatIsNotSentInTimeIsNeverSent stops a server while a client connects to it. The
// client still tries when the server continues, after the budget has ended.
func TestWhatIsNotSentInTimeIsNeverSent(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	admin, key := srv.Admin(t), srv.Prefix(t)
	if err := newRunner(t, srv.Client(t), nil).Load(t.Context(), count); err != nil { // so that a call that is sent runs
		t.Fatal(err)
	}
	rdb := srv.Client(t, func(o *redis.Options) { o.ReadTimeout = time.Minute })
	srv.Pause(t)
	const calls = 5
	r := newRunner(t, rdb, &script.Options{Budget: time.Second})
	for range calls {
		if _, err := r.Run(t.Context(), count, []string{key}, 1); !errors.Is(err, script.ErrNotExecuted) {
			t.Errorf("a call to a stopped server: got %v, want ErrNotExecuted", err)
		}
	}
	srv.Resume(t)
	redistest.Await(t, 30*time.Second, "the client to send something else instead", func() bool {
		return redistest.CommandStats(t, admin)["evalsha"].Calls >= calls
	})
	if n, err := admin.Exists(t.Context(), key).Result(); err != nil || n != 0 {
		t.Errorf("calls that were not executed: got %d keys (%v), want none", n, err)
	}
}

// TestErrorsOfAScript: whatever error a script raises, and each that stands in it, is its
// own. What it makes up and returns may be a proxy's.
func TestErrorsOfAScript(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		r := newRunner(t, rdb, &script.Options{Budget: 5 * time.Second})
		for body, want := range map[string]error{
			"return redis.error_reply('SOLDOUT none are left')":  script.ErrFailed,
			`return redis.error_reply("-SOLDOUT none are left")`: script.ErrFailed,
			"return redis.error_reply('SOLDOUT')":                script.ErrFailed,
			"return {err = 'ERR none are left'}":                 script.ErrFailed,
			"return {err='none are left'}":                       script.ErrFailed,
			"error('none are left of ' .. KEYS[1])":              script.ErrFailed,
			"return redis.call('RPUSH', KEYS[1], 1)":             script.ErrFailed,
			"return redis.pcall('RPUSH', KEYS[1], 1)":            script.ErrFailed,
			"return redis.call('NOSUCHCOMMAND')":                 script.ErrFailed,
			"local reply = redis.pcall('RPUSH', KEYS[1], 1) if reply.err then error(reply.err) end return reply": script.ErrFailed,
			"syntax": script.ErrFailed,
			"return redis.error_reply('SOLDOUT none are left of ' .. KEYS[1])": script.ErrMaybeExecuted,
		} {
			if err := rdb.Set(t.Context(), prefix, "x", time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Run(t.Context(), script.New("own.lua", body), []string{prefix}); !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", body, err, want)
			}
		}
	})
}

// TestAScriptsOwnErrorRunsOnce raises errors whose codes look like refusals, after a
// write.
func TestAScriptsOwnErrorRunsOnce(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		r := newRunner(t, rdb, &script.Options{Budget: 5 * time.Second})
		for name, ending := range map[string]string{
			"own":   "return redis.error_reply('BUSY seat taken')",
			"group": "redis.call('RPUSH', KEYS[2], 1)",
		} {
			s := script.New(name+".lua", "redis.call('INCRBY', KEYS[1], 1) redis.call('PEXPIRE', KEYS[1], 60000)\n"+
				"redis.call('SET', KEYS[2], 1, 'PX', 60000)\n"+ending)
			keys := []string{prefix + "{" + name + "}a", prefix + "{" + name + "}b"}
			if _, err := r.Run(t.Context(), s, keys); !errors.Is(err, script.ErrFailed) {
				t.Errorf("%s: got %v, want ErrFailed", name, err)
			}
			if n := rdb.Get(t.Context(), keys[0]).Val(); n != "1" {
				t.Errorf("%s: got %s runs, want one", name, n)
			}
		}
		if _, err := r.Run(t.Context(), count, []string{prefix}, struct{}{}); !errors.Is(err, script.ErrConfiguration) {
			t.Errorf("an argument that cannot be sent: got %v, want ErrConfiguration", err)
		}
	})
}

// TestCallersContext: if it ends, the error is the caller's, and not that of an outage.
func TestCallersContext(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	for _, contextTimeouts := range []bool{false, true} {
		rdb := redis.NewClient(&redis.Options{Addr: l.Addr().String(), ContextTimeoutEnabled: contextTimeouts})
		t.Cleanup(func() { rdb.Close() })
		r := newRunner(t, rdb, &script.Options{Budget: time.Minute})

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Run(ended, count, []string{"k"}, 1); err != context.Canceled {
			t.Errorf("a call with a context that has ended: got %v, want context.Canceled", err)
		}
		short, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		if _, err := r.Run(short, count, []string{"k"}, 1); err != context.DeadlineExceeded {
			t.Errorf("a call with a context that ends: got %v, want DeadlineExceeded", err)
		}
		cancel()
	}
}

// refusing is a client that reaches no server.
type refusing struct{}

func (refusing) Process(_ context.Context, cmd redis.Cmder) error {
	cmd.SetErr(io.ErrUnexpectedEOF)
	return io.ErrUnexpectedEOF
}

// TestCallersContextBetweenAttempts ends the context while the runner waits for its next
// attempt.
func TestCallersContextBetweenAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(t, refusing{}, &script.Options{Budget: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := r.Run(ctx, count, []string{"k"}, 1); err != context.Canceled {
			t.Errorf("a context that ends between two attempts: got %v, want context.Canceled", err)
		}
	})
}

package store_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// unreachable are servers that no client can ask, and what the error says about each.
func unreachable(t *testing.T) map[string]struct {
	opts redis.Options
	want string
} {
	t.Helper()
	https := httptest.NewUnstartedServer(http.NotFoundHandler())
	https.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	https.StartTLS()
	t.Cleanup(https.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	go func() {
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, io.LimitReader(conn, 6)); conn.Close() }()
		}
	}()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	return map[string]struct {
		opts redis.Options
		want string
	}{
		"refused port":           {redis.Options{Addr: closed.Addr().String()}, syscall.ECONNREFUSED.Error()},
		"unknown CA":             {redis.Options{Addr: https.Listener.Addr().String(), TLSConfig: &tls.Config{ServerName: "example.com"}}, "certificate signed by unknown authority"},
		"a client without TLS":   {redis.Options{Addr: https.Listener.Addr().String()}, "the server wants TLS: set TLSConfig"},
		"another kind of server": {redis.Options{Addr: plain.Listener.Addr().String()}, "the server does not speak the protocol of Redis"},
		"a server that hangs up": {redis.Options{Addr: silent.Addr().String()}, "accepts connections and does not answer"},
	}
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	for name, c := range unreachable(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := redis.NewClient(&c.opts)
			t.Cleanup(func() { rdb.Close() })
			var all sync.WaitGroup
			for range 3 { // callers that ask at the same time
				all.Go(func() { diagnosed(t, rdb, c.want) })
			}
			all.Wait()
			cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{c.opts.Addr}, TLSConfig: c.opts.TLSConfig})
			t.Cleanup(func() { cluster.Close() })
			diagnosed(t, cluster, c.want)
		})
	}
	srv := redistest.Standalone(t)
	for name, rdb := range map[string]script.Client{
		"one that answers":               srv.Client(t),
		"one that wants a password":      redis.NewClient(&redis.Options{Addr: srv.Addr()}),
		"a client that hides its server": struct{ script.Client }{unused(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			diagnosed(t, rdb, "")
		})
	}
}

// diagnosed fails the test unless a diagnosis has want in it, or finds nothing if want is
// empty. On a busy machine the time of one may pass before a server does anything.
func diagnosed(t *testing.T, rdb script.Client, want string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		err := of(t, rdb).Diagnose(t.Context())
		switch {
		case want == "" && err == nil, want != "" && err != nil && strings.Contains(err.Error(), want):
			return
		case err == nil || !strings.Contains(err.Error(), "no answer within") || time.Now().After(deadline):
			t.Errorf("got the diagnosis %v, want %q in it", err, want)
			return
		}
	}
}

// TestAServerThatHangsUpSaysWhy: it refuses a client and ends the connection, and the
// client only reports the end. The cause says why.
func TestAServerThatHangsUpSaysWhy(t *testing.T) {
	t.Parallel()
	redistest.Require(t)
	for name, c := range map[string]struct {
		args    []string
		address func(server string) string
		want    string
	}{
		"protected mode":   {[]string{"--protected-mode", "yes", "--bind", "*"}, redistest.FromOutside, "DENIED"},
		"too many clients": {[]string{"--maxclients", "1"}, func(server string) string { return server }, "no room for another client"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, end, err := redistest.Start(c.args...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = end() })
			address := c.address(server)
			if address == "" {
				t.Skip("this host has no address but those of itself")
			}
			full := redis.NewClient(&redis.Options{Addr: server})
			t.Cleanup(func() { full.Close() })
			redistest.Await(t, 30*time.Second, "a connection", func() bool { return full.Ping(t.Context()).Err() == nil })
			for _, retries := range []int{0, -1} { // 0 is 3, and -1 is none: the Warm fails at once
				rdb := redis.NewClient(&redis.Options{Addr: address, MaxRetries: retries})
				t.Cleanup(func() { rdb.Close() })
				diagnosed(t, rdb, c.want)
				warmSays(t, rdb, c.want)
			}
		})
	}
}

// TestCausesNameTheReason: the error of a call during an outage says why, and so does the
// error of a Warm that ends with its context.
func TestCausesNameTheReason(t *testing.T) {
	t.Parallel()
	for name, c := range unreachable(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, dials := range []int{0, 1} { // 0 is 5: the deadline passes before the client gives up
				opts := c.opts
				opts.DialerRetries = dials
				causeOf(t, &opts, c.want)
			}
			fresh := redis.NewClient(&c.opts)
			t.Cleanup(func() { fresh.Close() })
			warmSays(t, fresh, c.want)
		})
	}
}

// warmSays fails the test unless the error of a Warm names the reason, once. On a busy
// machine the time of one may pass before a connection does anything: then it is tried
// again.
func warmSays(t *testing.T, rdb script.Client, want string) {
	t.Helper()
	var err error
	redistest.Await(t, 2*time.Minute, "a Warm that says "+want, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err = aLimit(t, rdb).Warm(ctx)
		return ctx.Err() == nil || err != nil && strings.Contains(err.Error(), want)
	})
	if err == nil || !strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "HTTP/1.1 400") { // which the client has said by itself
		t.Fatalf("Warm: got %v, want %q in it", err, want)
	}
	if n := strings.Count(err.Error(), want); n > 1 {
		t.Errorf("Warm: got %v, want %q once, not %d times", err, want, n)
	}
}

// causeOf fails the test unless the causes of degraded decisions name the reason, once
// each.
func causeOf(t *testing.T, opts *redis.Options, want string) {
	t.Helper()
	rdb := redis.NewClient(opts)
	t.Cleanup(func() { rdb.Close() })
	l := aLimit(t, storetest.Open(t, rdb, store.Options{Logger: slog.New(slog.DiscardHandler)}))
	for _, sent := range []bool{false, true} { // the breaker is open, and a later trial of it
		redistest.Await(t, 2*time.Minute, fmt.Sprintf("a cause that says %s, of a call that was sent: %t", want, sent), func() bool {
			var said atomic.Bool
			var callers sync.WaitGroup
			for range 8 { // on a busy machine the calls of one would be too few to open a breaker
				callers.Go(func() {
					d, err := l.Take(t.Context(), "s")
					if err != nil || !d.Degraded {
						t.Errorf("a call: got %+v and %v, want a degraded decision", d, err)
						return
					}
					cause := d.Cause.Error()
					if n := strings.Count(cause, want); n > 1 {
						t.Errorf("got the cause %v, want %q once, not %d times", d.Cause, want, n)
					}
					if strings.Contains(cause, want) && strings.Contains(cause, "did not answer lately") != sent &&
						(errors.Is(d.Cause, script.ErrNotExecuted) || errors.Is(d.Cause, script.ErrMaybeExecuted)) {
						said.Store(true)
					}
				})
			}
			callers.Wait()
			return said.Load() || t.Failed()
		})
	}
}

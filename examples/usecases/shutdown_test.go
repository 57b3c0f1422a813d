package usecases

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/nethttp"
)

// Under load: what has begun is answered, nothing of neap's is left behind, and the prepaid
// permits are back.
func TestServe(t *testing.T) {
	t.Parallel()
	const quota = 100_000
	st, prepaid, other := daily(t, quota)
	slots, err := inflight.New(st, "api", 1000, nil)
	if err != nil {
		t.Fatal(err)
	}
	const clients = 8
	var handled, atWork atomic.Int64
	busy := make(chan struct{})
	ctx, sigterm := context.WithCancel(t.Context())
	handler := nethttp.Middleware(gate.Chain(gate.RateLimit(prepaid, gate.Everyone, nil), gate.Concurrency(slots, gate.Everyone, nil)))(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if handled.Add(1) > 50 { // each client has one at work when the server shuts down
				if atWork.Add(1) == clients {
					close(busy)
				}
				<-ctx.Done()
			}
			_, _ = io.WriteString(w, "done")
		}))
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, &http.Server{Handler: handler}, on, time.Minute, st) }()

	var answered atomic.Int64
	var done sync.WaitGroup
	for range clients {
		done.Go(func() {
			for {
				a, err := http.Get("http://" + on.Addr().String())
				if err != nil {
					return // the server takes no more
				}
				body, err := io.ReadAll(a.Body)
				_ = a.Body.Close()
				if a.StatusCode == http.StatusOK && string(body) == "done" && err == nil {
					answered.Add(1)
				} else {
					t.Errorf("got %d %q, %v, want an answer or none", a.StatusCode, body, err)
				}
			}
		})
	}
	<-busy
	sigterm()
	if err := <-served; err != nil {
		t.Errorf("got %v, want a clean end", err)
	}
	done.Wait()
	if answered.Load() != handled.Load() {
		t.Errorf("got %d answers, want one for each of %d requests that the handler began", answered.Load(), handled.Load())
	}
	if taken := quota - left(t, other); taken != handled.Load() {
		t.Errorf("got %d permits taken, want the %d that requests used", taken, handled.Load())
	}
	if n, err := slots.InFlight(t.Context(), subjectOfAll(t)); n != 0 || err != nil {
		t.Errorf("got %d slots, %v, want none", n, err)
	}
}

// A request that does not end costs the prepaid permits nothing.
func TestServeWithARequestThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	st, prepaid, other := daily(t, 1000)
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var handled atomic.Int64
	ctx, sigterm := context.WithCancel(t.Context())
	handler := nethttp.Middleware(gate.RateLimit(prepaid, gate.Everyone, nil))(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if handled.Add(1) > 50 { // those before it had permits prepaid
			sigterm()
			<-r.Context().Done()
		}
	}))
	go func() {
		for range 51 {
			if a, err := http.Get("http://" + on.Addr().String()); err == nil {
				_ = a.Body.Close()
			}
		}
	}()
	if err := Serve(ctx, &http.Server{Handler: handler}, on, time.Millisecond, st); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	if got := left(t, other); got != 1000-51 {
		t.Errorf("got %d permits left, want those that 51 requests have not used", got)
	}
}

// failing is a listener that fails when it is told to, with one connection accepted.
type failing struct {
	net.Listener

	now      chan struct{}
	accepted atomic.Bool
}

func (f *failing) Accept() (net.Conn, error) {
	if f.accepted.Swap(true) {
		<-f.now
		return nil, net.ErrClosed
	}
	return f.Listener.Accept()
}

// If the server fails by itself, a request that has begun is answered all the same.
func TestServeThatFails(t *testing.T) {
	t.Parallel()
	st, _, _ := daily(t, 1000)
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fails := &failing{Listener: on, now: make(chan struct{})}
	ending, returned := make(chan struct{}), make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(fails.now)
		select {
		case <-ending:
			_, _ = io.WriteString(w, "done")
		case <-returned:
		}
	})}
	server.RegisterOnShutdown(func() { close(ending) })
	answer := make(chan string, 1)
	go func() {
		a, err := http.Get("http://" + on.Addr().String())
		if err != nil {
			answer <- err.Error()
			return
		}
		defer a.Body.Close()
		body, _ := io.ReadAll(a.Body)
		answer <- string(body)
	}()
	if err := Serve(t.Context(), server, fails, time.Minute, st); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want that of the listener", err)
	}
	close(returned)
	if got := <-answer; got != "done" {
		t.Errorf("the request was answered with %q, want done", got)
	}
}

// daily is a limit of so many a day with prepaid permits, in this process and in another.
func daily(t *testing.T, quota int64) (st *store.Store, prepaid, other *limit.Limiter) {
	t.Helper()
	srv := redistest.Standalone(t)
	st, err := store.Open(srv.Client(t), &store.Options{Prefix: srv.Prefix(t), Budget: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var both [2]*limit.Limiter
	for i := range both {
		both[i], err = limit.New(st, "api", []limit.Policy{limit.FixedWindow{Name: "daily", Limit: quota, Window: 24 * time.Hour}},
			&limit.Options{Prepaid: limit.Prepaid{Most: 100}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return st, both[0], both[1]
}

// left is how many permits a limiter finds.
func left(t *testing.T, l *limit.Limiter) int64 {
	t.Helper()
	d, err := l.Peek(t.Context(), subjectOfAll(t))
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

func subjectOfAll(t *testing.T) string {
	t.Helper()
	subject, err := gate.Subject(gate.Everyone, gate.Values{})
	if err != nil {
		t.Fatal(err)
	}
	return subject
}

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
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/nethttp"
)

// Under load: what has begun is answered, nothing of neap's is left behind, and the prepaid
// permits are back.
func TestServe(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	st, err := store.Open(srv.Client(t), &store.Options{Prefix: srv.Prefix(t), Budget: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	const quota = 100_000
	window := limit.FixedWindow{Name: "daily", Limit: quota, Window: 24 * time.Hour}
	opts := &limit.Options{Prepaid: limit.Prepaid{Most: 100}}
	prepaid, err := limit.New(st, "api", []limit.Policy{window}, opts)
	if err != nil {
		t.Fatal(err)
	}
	slots, err := limit.NewConcurrency(st, "api", 1000, nil)
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
	go func() { served <- Serve(ctx, &http.Server{Handler: handler}, on, time.Minute, st, prepaid) }()

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
	if taken := quota - left(t, st, window, opts); taken != handled.Load() {
		t.Errorf("got %d permits taken, want the %d that requests used", taken, handled.Load())
	}
	if n, err := slots.InFlight(t.Context(), subjectOfAll(t)); n != 0 || err != nil {
		t.Errorf("got %d slots, %v, want none", n, err)
	}
}

// A request that does not end costs the prepaid permits nothing.
func TestServeWithARequestThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	st, err := store.Open(srv.Client(t), &store.Options{Prefix: srv.Prefix(t), Budget: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	window := limit.FixedWindow{Name: "daily", Limit: 1000, Window: 24 * time.Hour}
	opts := &limit.Options{Prepaid: limit.Prepaid{Most: 100}}
	prepaid, err := limit.New(st, "api", []limit.Policy{window}, opts)
	if err != nil {
		t.Fatal(err)
	}
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, sigterm := context.WithCancel(t.Context())
	handler := nethttp.Middleware(gate.RateLimit(prepaid, gate.Everyone, nil))(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		sigterm()
		<-r.Context().Done()
	}))
	go func() {
		if a, err := http.Get("http://" + on.Addr().String()); err == nil {
			_ = a.Body.Close()
		}
	}()
	if err := Serve(ctx, &http.Server{Handler: handler}, on, time.Millisecond, st, prepaid); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	if got := left(t, st, window, opts); got != 999 {
		t.Errorf("got %d permits left, want 999", got)
	}
}

// left is how many permits another process finds.
func left(t *testing.T, st *store.Store, window limit.Policy, opts *limit.Options) int64 {
	t.Helper()
	other, err := limit.New(st, "api", []limit.Policy{window}, opts)
	if err != nil {
		t.Fatal(err)
	}
	d, err := other.Peek(t.Context(), subjectOfAll(t))
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

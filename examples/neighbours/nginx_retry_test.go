package neighbours

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/gatefake"
	"github.com/neap-go/neap/nethttp"
)

// instances are two of one service, behind nginx.conf.
func instances(t *testing.T, h http.Handler, pairs ...string) (url string) {
	t.Helper()
	one, two := httptest.NewServer(h), httptest.NewServer(h)
	t.Cleanup(one.Close)
	t.Cleanup(two.Close)
	return "http://" + startNginx(t, recipe(t, "nginx.conf", append([]string{
		firstLine, "server " + one.Listener.Addr().String() + ";",
		secondLine, "server " + two.Listener.Addr().String() + ";",
	}, pairs...)...)) + "/orders"
}

func newGuard(t *testing.T) gate.Gate {
	t.Helper()
	guard, err := idempotency.New(gatefake.Redis(t), "orders", idempotency.Retry{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return gate.Idempotent(guard, BehindProxies(nginxAlone), &gate.IdempotentOptions{Methods: []string{"POST"}})
}

// nginx passes on the fields that gates read and write.
func TestFieldsThroughNginx(t *testing.T) {
	t.Parallel()
	requireNginx(t)
	limited := gate.RateLimit(atMost(t, 2), BehindProxies(nginxAlone), nil)
	url := instances(t, nethttp.Middleware(gate.Chain(limited, newGuard(t)))(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })))
	for _, c := range []struct {
		what, client string
		status       int
		fields       []string
	}{
		{"an order", "127.0.0.2", 201, []string{"Ratelimit", "Ratelimit-Policy"}},
		{"the order again", "127.0.0.2", 201, []string{"Ratelimit", "Ratelimit-Policy", "Idempotent-Replayed"}},
		{"a third time", "127.0.0.2", 429, []string{"Ratelimit", "Ratelimit-Policy", "Retry-After"}},
		{"another client under the same key", "127.0.0.3", 201, []string{"Ratelimit", "Ratelimit-Policy"}},
	} {
		response, body := send(t, c.client, "POST", url, line("Idempotency-Key", `"one"`))
		for _, field := range []string{"Ratelimit", "Ratelimit-Policy", "Retry-After", "Idempotent-Replayed"} {
			if (response.Header.Get(field) != "") != slices.Contains(c.fields, field) {
				t.Errorf("%s: got the fields %v, want of those of gates %v", c.what, response.Header, c.fields)
			}
		}
		if response.StatusCode != c.status || (c.status == 429) != strings.Contains(body, `"status":429`) {
			t.Errorf("%s: got %d %q, want %d and its problem document", c.what, response.StatusCode, body, c.status)
		}
	}
}

const sendsAgain = clientLine + " proxy_next_upstream error timeout non_idempotent;"

// The first instance that works dies before it has answered. nginx sends a GET to
// the next one, and a POST only when it is told to.
func TestNginxSendsAgain(t *testing.T) {
	t.Parallel()
	requireNginx(t)
	for what, c := range map[string]struct {
		method, line  string
		guarded       bool
		statuses      []int // of the calls of one client
		runs, permits int64
	}{
		"GET":                           {"GET", clientLine, false, []int{200}, 2, 2},
		"POST":                          {"POST", clientLine, false, []int{502}, 1, 1},
		"POST, guarded, and again":      {"POST", clientLine, true, []int{502, 200}, 1, 2},
		"POST, non_idempotent":          {"POST", sendsAgain, false, []int{200}, 2, 2},
		"POST, non_idempotent, guarded": {"POST", sendsAgain, true, []int{200}, 1, 2},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var runs, answers atomic.Int64
			limiter := atMost(t, 100)
			h := http.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runs.Add(1) }))
			if c.guarded {
				h = nethttp.Middleware(newGuard(t))(h)
			}
			h = nethttp.Middleware(gate.RateLimit(limiter, BehindProxies(nginxAlone), nil))(h)
			url := instances(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer := httptest.NewRecorder()
				h.ServeHTTP(answer, r)
				if answers.Add(1) == 1 {
					panic(http.ErrAbortHandler) // the connection ends without an answer
				}
				maps.Copy(w.Header(), answer.Header())
				w.WriteHeader(answer.Code)
			}), clientLine, c.line)
			for i, want := range c.statuses {
				response, _ := send(t, "127.0.0.2", c.method, url, line("Idempotency-Key", "one"))
				if response.StatusCode != want {
					t.Errorf("call %d: got %d, want %d", i, response.StatusCode, want)
				}
			}
			left, err := limiter.Peek(t.Context(), "ip=127.0.0.2")
			if err != nil || runs.Load() != c.runs || 100-left.Remaining != c.permits {
				t.Errorf("got %d runs and %d permits taken, %v; want %d and %d", runs.Load(), 100-left.Remaining, err, c.runs, c.permits)
			}
		})
	}
}

// The first instance takes longer than nginx waits. In the next one the guard answers
// 409 while the first still runs, and with the result afterwards.
func TestNginxTimesOut(t *testing.T) {
	t.Parallel()
	requireNginx(t)
	var runs atomic.Int64
	finish, finished := make(chan struct{}), make(chan struct{})
	h := nethttp.Middleware(newGuard(t))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		runs.Add(1)
		<-finish
		w.WriteHeader(http.StatusCreated)
	}))
	url := instances(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		if w.Header().Get("Retry-After") == "" {
			select {
			case <-finished:
			default:
				close(finished)
			}
		}
	}), clientLine, sendsAgain+" proxy_read_timeout 10s;")
	response, _ := send(t, "127.0.0.2", "POST", url, line("Idempotency-Key", "one"))
	if response.StatusCode != http.StatusConflict || response.Header.Get("Retry-After") != "1" {
		t.Errorf("while it runs: got %d with the fields %v, want a 409 with Retry-After: 1", response.StatusCode, response.Header)
	}
	close(finish)
	<-finished
	response, _ = send(t, "127.0.0.2", "POST", url, line("Idempotency-Key", "one"))
	if response.StatusCode != http.StatusCreated || response.Header.Get("Idempotent-Replayed") != "true" || runs.Load() != 1 {
		t.Errorf("afterwards: got %d with the fields %v after %d runs, want the first answer again after one", response.StatusCode, response.Header, runs.Load())
	}
}

// If nginx is told to send a request again that was answered 429, it takes the
// instance for failed: the refusals of one client are an outage for all.
func TestNginxTakesRefusalsForFailures(t *testing.T) {
	t.Parallel()
	requireNginx(t)
	for what, c := range map[string]struct {
		line   string
		outage bool
	}{
		"by default": {clientLine, false},
		"http_429":   {clientLine + " proxy_next_upstream error timeout http_429;", true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			url := instances(t, nethttp.Middleware(gate.RateLimit(atMost(t, 5), BehindProxies(nginxAlone), nil))(http.HandlerFunc(ok)), clientLine, c.line)
			refused := 0
			for range 10 {
				if response, _ := send(t, "127.0.0.2", "GET", url, nil); response.StatusCode != 200 {
					refused++
				}
			}
			if refused != 5 {
				t.Errorf("got %d of 10 calls refused, want the 5 beyond the limit", refused)
			}
			want := 200
			if c.outage {
				want = 502
			}
			if response, _ := send(t, "127.0.0.3", "GET", url, nil); response.StatusCode != want {
				t.Errorf("another client: got %d, want %d", response.StatusCode, want)
			}
		})
	}
}

package nethttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/outgoing"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/nethttp"
)

// partner answers requests in place of somebody's API.
type partner func(*http.Request) (*http.Response, error)

func (p partner) RoundTrip(r *http.Request) (*http.Response, error) { return p(r) }

// says is a partner that answers each request alike, and counts them.
func says(n *atomic.Int64, status int, fields ...string) partner {
	return func(*http.Request) (*http.Response, error) {
		n.Add(1)
		a := answerOf(status, fields...)
		a.Body = http.NoBody
		return a, nil
	}
}

// heldLimiter is a limit of n an hour, as each process has it.
func heldLimiter(t *testing.T, rdb script.Client, n int64) *limit.Limiter {
	t.Helper()
	l, err := limit.New(rdb, "partner", []limit.Policy{limit.FixedWindow{Name: "quota", Limit: n, Window: time.Hour}},
		&limit.Options{Holds: true, Fail: store.FailClosed, Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// get sends a request to an API, and returns the status of the answer and the denial.
func get(t *testing.T, of http.RoundTripper, url string) (status int, denied *limit.LimitedError) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := (&http.Client{Transport: of}).Do(r)
	if errors.As(err, &denied) && errors.Is(err, limit.ErrLimited) {
		return 0, denied
	}
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	return a.StatusCode, nil
}

const api = "https://api.example.com/v1"

// inBubble runs a test with two processes on one Redis, in virtual time.
func inBubble(t *testing.T, run func(t *testing.T, m *miniredis.Miniredis, process func() script.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := redistest.Bubble(t)
		run(t, m, func() script.Client { return redistest.BubbleClient(t, m) })
	})
}

// TestTheLimitHoldsForAllProcesses, and the request that is denied is not sent.
func TestTheLimitHoldsForAllProcesses(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, process func() script.Client) {
		var sent atomic.Int64
		one := nethttp.NewTransport(says(&sent, 200), heldLimiter(t, process(), 3), nil, nil)
		other := nethttp.NewTransport(says(&sent, 200), heldLimiter(t, process(), 3), nil, nil)
		for i, of := range []http.RoundTripper{one, other, one, other, one} {
			status, denied := get(t, of, api)
			switch {
			case i < 3 && status != 200:
				t.Errorf("request %d of 3: got %d, %v, want 200", i+1, status, denied)
			case i >= 3 && (denied == nil || denied.RetryAfter != time.Hour || denied.Decision.Policy != "quota" || denied.Decision.OnHold()):
				t.Errorf("request %d of 3: got %d, %+v, want a denial for an hour", i+1, status, denied)
			}
		}
		if sent.Load() != 3 {
			t.Errorf("got %d requests sent, want 3", sent.Load())
		}
		if status, denied := get(t, one, "https://other.example.com"); status != 200 {
			t.Errorf("another host: got %d, %v, want 200", status, denied)
		}
		time.Sleep(time.Hour)
		if status, denied := get(t, other, api); status != 200 {
			t.Errorf("an hour later: got %d, %v, want 200", status, denied)
		}
	})
}

// TestThePartnersWordHoldsForAllProcesses until it is over. The answer reaches the caller.
func TestThePartnersWordHoldsForAllProcesses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		fields []string
		opts   nethttp.TransportOptions
		want   time.Duration // 0: it puts nothing on hold
	}{
		"429 with Retry-After":          {429, []string{"Retry-After", "30"}, nethttp.TransportOptions{}, 30 * time.Second},
		"200 with RateLimit":            {200, []string{"RateLimit", `"all";r=0;t=7`}, nethttp.TransportOptions{}, 7 * time.Second},
		"429 without a word":            {429, nil, nethttp.TransportOptions{}, time.Second},
		"longer than MaxHold":           {429, []string{"Retry-After", "3600"}, nethttp.TransportOptions{MaxHold: time.Minute}, time.Minute},
		"longer than an hour":           {429, []string{"Retry-After", "36000"}, nethttp.TransportOptions{}, time.Hour},
		"503 with Retry-After":          {503, []string{"Retry-After", "30"}, nethttp.TransportOptions{}, 0},
		"503 that is asked for":         {503, []string{"Retry-After", "30"}, nethttp.TransportOptions{Told: nethttp.ToldAlsoBy(503)}, 30 * time.Second},
		"X fields that are asked for":   {403, []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "20"}, nethttp.TransportOptions{Told: nethttp.ToldByReset()}, 20 * time.Second},
		"X fields that nobody asks for": {403, []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "20"}, nethttp.TransportOptions{}, 0},
		"200":                           {200, nil, nethttp.TransportOptions{}, 0},
	} {
		inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, process func() script.Client) {
			var told, sent atomic.Int64
			one := nethttp.NewTransport(says(&told, c.status, c.fields...), heldLimiter(t, process(), 1000), nil, &c.opts)
			other := nethttp.NewTransport(says(&sent, 200), heldLimiter(t, process(), 1000), nil, nil)
			if status, denied := get(t, one, api); status != c.status {
				t.Errorf("%s: got %d, %v, want the answer as it is: %d", name, status, denied, c.status)
			}
			if c.want > 0 {
				for _, of := range []http.RoundTripper{one, other} {
					if status, denied := get(t, of, api); denied == nil || !denied.Decision.OnHold() || denied.RetryAfter != c.want {
						t.Errorf("%s: then got %d, %+v, want it on hold for %v", name, status, denied, c.want)
					}
				}
				time.Sleep(c.want)
			}
			if status, denied := get(t, other, api); status != 200 || sent.Load() != 1 || told.Load() != 1 {
				t.Errorf("%s: when it is over: got %d, %v, and %d and %d requests sent, want 200 and one each", name, status, denied, told.Load(), sent.Load())
			}
		})
	}
}

// TestARefusalWithoutAWordHoldsLongerEachTime, up to MaxHold, and as at first after an
// answer that is none.
func TestARefusalWithoutAWordHoldsLongerEachTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, process func() script.Client) {
		status := 429
		base := partner(func(*http.Request) (*http.Response, error) {
			a := answerOf(status)
			a.Body = http.NoBody
			return a, nil
		})
		of := nethttp.NewTransport(base, heldLimiter(t, process(), 1000), nil, &nethttp.TransportOptions{MaxHold: 5 * time.Second})
		held := func() time.Duration {
			t.Helper()
			if got, denied := get(t, of, api); got != status {
				t.Fatalf("got %d, %v, want %d", got, denied, status)
			}
			if got, denied := get(t, of, api); denied != nil {
				time.Sleep(denied.RetryAfter)
				return denied.RetryAfter
			} else if got != 200 {
				t.Fatalf("got %d, want 200", got)
			}
			return 0
		}
		var got []time.Duration
		for range 4 {
			got = append(got, held())
		}
		status = 200
		got = append(got, held())
		status = 429
		got = append(got, held())
		if want := []time.Duration{1e9, 2e9, 4e9, 5e9, 0, 1e9}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// spy is a body that knows whether it is closed.
type spy struct {
	io.Reader
	closed atomic.Bool
}

func (s *spy) Close() error {
	s.closed.Store(true)
	return nil
}

// TestTheContractOfRoundTripper: the request's body is closed, whatever happens, and what
// base returned is returned.
func TestTheContractOfRoundTripper(t *testing.T) {
	t.Parallel()
	reset := errors.New("reset")
	for name, c := range map[string]struct {
		limit  int64
		key    func(*http.Request) (string, error)
		cancel bool
		base   partner
		want   error
	}{
		"denied":             {limit: 1, want: limit.ErrLimited},
		"no key":             {limit: 9, key: func(*http.Request) (string, error) { return "", reset }, want: reset},
		"a key that panics":  {limit: 9, key: func(*http.Request) (string, error) { panic(reset) }, want: reset},
		"an empty key":       {limit: 9, key: func(*http.Request) (string, error) { return "", nil }, want: limit.ErrSubject},
		"its client is gone": {limit: 9, cancel: true, want: context.Canceled},
		"an error of base":   {limit: 9, base: func(r *http.Request) (*http.Response, error) { r.Body.Close(); return nil, reset }, want: reset},
	} {
		_, rdb := redistest.Miniredis(t)
		l := heldLimiter(t, rdb, c.limit)
		var sent atomic.Int64
		base := says(&sent, 200)
		if c.base != nil {
			base = c.base
		}
		if _, err := l.TakeN(t.Context(), "api.example.com", 1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if c.cancel {
			cancel()
		}
		body := &spy{Reader: strings.NewReader("body")}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, api, body)
		if err != nil {
			t.Fatal(err)
		}
		before := fmt.Sprint(r.Header, r.URL, r.Host, r.ContentLength, r.Body == io.ReadCloser(body))
		a, err := roundTrip(nethttp.NewTransport(base, l, c.key, nil), r)
		cancel()
		if a != nil || !errors.Is(err, c.want) || sent.Load() != 0 {
			t.Errorf("%s: got %v, %v, and %d requests sent, want %v and none", name, a, err, sent.Load(), c.want)
		}
		if after := fmt.Sprint(r.Header, r.URL, r.Host, r.ContentLength, r.Body == io.ReadCloser(body)); !body.closed.Load() || after != before {
			t.Errorf("%s: the body is closed: %t, and the request %s, want it closed, and %s", name, body.closed.Load(), after, before)
		}
	}
}

// TestARequestEndsOnce, with its body or without an answer: it is settled, and its slot is
// free.
func TestARequestEndsOnce(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken off")
	answered := func(body io.ReadCloser) partner {
		return func(*http.Request) (*http.Response, error) {
			a := answerOf(200)
			a.Body = body
			return a, nil
		}
	}
	closes := func(a *http.Response) { a.Body.Close() }
	body := &spy{Reader: strings.NewReader("body")} // if Told panics
	for name, c := range map[string]struct {
		base    partner
		told    func(*http.Response) time.Duration
		settles func(*http.Response) // what Settle does with the body, too
		reads   func(a *http.Response)
		without bool // a response
		open    bool // until what is read ends it
	}{
		"an empty body":         {base: answered(http.NoBody), reads: func(*http.Response) {}},
		"a body that is closed": {base: answered(&spy{Reader: strings.NewReader("body")}), reads: closes, open: true},
		"read to its end":       {base: answered(&spy{Reader: strings.NewReader("body")}), reads: func(a *http.Response) { _, _ = io.ReadAll(a.Body) }, open: true},
		"read, and closed twice": {base: answered(&spy{Reader: strings.NewReader("body")}), reads: func(a *http.Response) {
			_, _ = io.ReadAll(a.Body)
			a.Body.Close()
			a.Body.Close()
		}, open: true},
		"broken off": {base: answered(&spy{Reader: io.MultiReader(strings.NewReader("bo"), errReader{broken})}), reads: func(a *http.Response) {
			_, _ = io.ReadAll(a.Body)
		}, open: true},
		"closed by Settle too": {base: answered(&spy{Reader: strings.NewReader("body")}), settles: closes, reads: closes, open: true},
		"read by Settle":       {base: answered(&spy{Reader: strings.NewReader("body")}), settles: func(a *http.Response) { _, _ = io.ReadAll(a.Body) }, reads: closes, open: true},
		"no answer":            {base: func(*http.Request) (*http.Response, error) { return nil, broken }, without: true},
		"base panics":          {base: func(*http.Request) (*http.Response, error) { panic(broken) }, without: true},
		"Told panics":          {base: answered(body), told: func(*http.Response) time.Duration { panic(broken) }},
		"a nil response":       {base: func(*http.Request) (*http.Response, error) { return nil, nil }, without: true},
	} {
		_, rdb := redistest.Miniredis(t)
		l := heldLimiter(t, rdb, 100)
		slots, err := inflight.New(rdb, "partner", 1, &inflight.Options{Fail: store.FailClosed, Budget: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		var settled []*http.Response
		of := nethttp.NewTransport(c.base, l, nil, &nethttp.TransportOptions{
			Concurrency: slots, Told: c.told,
			Cost: func(*http.Request) int64 { return 10 },
			Settle: func(a *http.Response) int64 {
				settled = append(settled, a)
				if c.settles != nil {
					c.settles(a)
				}
				return 3
			},
		})
		used := func(taken, flying int64) {
			t.Helper()
			d, err := l.Peek(t.Context(), "api.example.com")
			inUse, fault := slots.InFlight(t.Context(), "api.example.com")
			if err != nil || fault != nil || 100-d.Remaining != taken || inUse != flying {
				t.Errorf("%s: got %d permits taken and %d in flight, %v, %v, want %d and %d", name, 100-d.Remaining, inUse, err, fault, taken, flying)
			}
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, api, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := roundTrip(of, r)
		if (a == nil) != (c.reads == nil) {
			t.Errorf("%s: got %v, %v, want an answer: %t", name, a, err, c.reads != nil)
		}
		if c.open {
			used(10, 1)
		}
		if c.reads != nil {
			c.reads(a)
		}
		used(3, 0)
		if c.told != nil && !body.closed.Load() {
			t.Errorf("%s: the body of the answer is open, want it closed", name)
		}
		if len(settled) != 1 || (settled[0] == nil) != c.without {
			t.Errorf("%s: got settled with %v, want once, with an answer: %t", name, settled, !c.without)
		}
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// roundTrip returns a panic as an error.
func roundTrip(of http.RoundTripper, r *http.Request) (a *http.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			cause, _ := p.(error)
			a, err = nil, errors.Join(fmt.Errorf("a panic: %v", p), cause)
		}
	}()
	return of.RoundTrip(r)
}

// TestABodyThatIsWrittenStaysOne: that of a 101.
func TestABodyThatIsWrittenStaysOne(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		said, _ := io.ReadAll(rw)
		_, _ = io.WriteString(conn, "you said "+string(said))
	}))
	defer server.Close()
	var ended atomic.Int64
	client := &http.Client{Transport: nethttp.NewTransport(nil, heldLimiter(t, rdb, 10), nil, &nethttp.TransportOptions{
		Settle: func(*http.Response) int64 { ended.Add(1); return -1 },
	})}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	a, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	w, ok := a.Body.(interface {
		io.Writer
		CloseWrite() error
	})
	if !ok || ended.Load() != 0 {
		t.Fatalf("got a body %T, and the request ended %d times, want one whose writing can be ended, and not ended", a.Body, ended.Load())
	}
	_, _ = io.WriteString(w, "hello")
	if err := w.CloseWrite(); err != nil {
		t.Error(err)
	}
	if said, err := io.ReadAll(a.Body); string(said) != "you said hello" || err != nil {
		t.Errorf("got %q, %v, want \"you said hello\"", said, err)
	}
	a.Body.Close()
	if ended.Load() != 1 {
		t.Errorf("the request ended %d times, want once", ended.Load())
	}
}

// TestSettleReadsTheTrailer of an answer that was read to its end.
func TestSettleReadsTheTrailer(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Cost")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("X-Cost", "7")
	}))
	defer server.Close()
	l := heldLimiter(t, rdb, 100)
	of := nethttp.NewTransport(nil, l, func(*http.Request) (string, error) { return "s", nil }, &nethttp.TransportOptions{
		Settle: func(a *http.Response) int64 {
			cost, _ := strconv.ParseInt(a.Trailer.Get("X-Cost"), 10, 64)
			return cost
		},
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := of.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if d, fault := l.Peek(t.Context(), "s"); string(body) != "body" || err != nil || fault != nil || d.Remaining != 93 {
		t.Errorf("got %q, %v and %d permits left, %v, want the body, and 7 used as the trailer says", body, err, d.Remaining, fault)
	}
}

// idle is a base that counts how often its idle connections were closed.
type idle struct {
	partner
	closed int
}

func (i *idle) CloseIdleConnections() { i.closed++ }

// TestCloseIdleConnections closes those of base, if it can.
func TestCloseIdleConnections(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	l, base := heldLimiter(t, rdb, 1), new(idle)
	for _, of := range []http.RoundTripper{base, partner(nil)} {
		(&http.Client{Transport: nethttp.NewTransport(of, l, nil, nil)}).CloseIdleConnections()
	}
	if base.closed != 1 {
		t.Errorf("got the connections of base closed %d times, want once", base.closed)
	}
}

// TestConcurrencyGivesThePermitBack of a request that finds no slot.
func TestConcurrencyGivesThePermitBack(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	l := heldLimiter(t, rdb, 10)
	slots, err := inflight.New(rdb, "partner", 1, &inflight.Options{Fail: store.FailClosed, Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var sent atomic.Int64
	of := nethttp.NewTransport(says(&sent, 200), l, nil, &nethttp.TransportOptions{Concurrency: slots})
	taken, err := slots.Try(t.Context(), "api.example.com")
	if err != nil {
		t.Fatal(err)
	}
	status, denied := get(t, of, api)
	if denied == nil || denied.Decision.Policy != "inflight" || denied.RetryAfter == 0 || sent.Load() != 0 {
		t.Errorf("without a slot: got %d, %+v and %d requests sent, want a denial of inflight and none", status, denied, sent.Load())
	}
	if d, err := l.Peek(t.Context(), "api.example.com"); err != nil || d.Remaining != 10 {
		t.Errorf("got %d permits left, %v, want all 10", d.Remaining, err)
	}
	if err := taken.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, denied := get(t, of, api); status != 200 {
		t.Errorf("with a slot: got %d, %v, want 200", status, denied)
	}
}

// TestARequestWaits for its permits, also for the end of a hold.
func TestARequestWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, process func() script.Client) {
		var sent atomic.Int64
		l := heldLimiter(t, process(), 1)
		of := nethttp.NewTransport(says(&sent, 200), l, nil, &nethttp.TransportOptions{Wait: 2 * time.Hour})
		for i, want := range []time.Duration{0, time.Hour} {
			began := time.Now()
			if status, denied := get(t, of, api); status != 200 || time.Since(began).Round(time.Second) != want {
				t.Errorf("request %d: got %d, %v after %v, want 200 after %v", i, status, denied, time.Since(began), want)
			}
		}
		if err := l.Hold(t.Context(), "api.example.com", 90*time.Minute); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if status, denied := get(t, of, api); status != 200 || time.Since(began).Round(time.Second) != 90*time.Minute {
			t.Errorf("on hold: got %d, %v after %v, want 200 after 90 min", status, denied, time.Since(began))
		}
	})
}

// TestTheSubjectIsTheHost if there is no key, also of a request that follows a redirect.
func TestTheSubjectIsTheHost(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	l := heldLimiter(t, rdb, 1000)
	of := nethttp.NewTransport(partner(func(r *http.Request) (*http.Response, error) {
		a := answerOf(200)
		if to := r.URL.Query().Get("to"); to != "" {
			a = answerOf(307, "Location", to)
		}
		a.Body = http.NoBody
		return a, nil
	}), l, nil, nil)
	for url, subjects := range map[string][]string{
		"https://a.example.com/x":                      {"a.example.com"},
		"https://B.Example.com:443/x":                  {"b.example.com"},
		"http://c.example.com:80":                      {"c.example.com"},
		"http://d.example.com:443":                     {"d.example.com:443"},
		"https://[2001:db8::1]:443/x":                  {"[2001:db8::1]"},
		"https://g.example.com.:0443/x":                {"g.example.com"},
		"https://[2001:DB8:0:0:0:0:0:2]:/x":            {"[2001:db8::2]"},
		"https://[::ffff:192.0.2.1]:08080/x":           {"192.0.2.1:8080"},
		"https://e.example.com?to=//f.example.com/new": {"e.example.com", "f.example.com"},
	} {
		if status, denied := get(t, of, url); status != 200 {
			t.Errorf("%s: got %d, %v, want 200", url, status, denied)
		}
		for _, subject := range subjects {
			if d, err := l.Peek(t.Context(), subject); err != nil || d.Remaining != 999 {
				t.Errorf("%s: got %d permits left of %q, %v, want 999", url, d.Remaining, subject, err)
			}
		}
	}
}

// TestNewTransportRefuses what would never work.
func TestNewTransportRefuses(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	without, err := limit.New(rdb, "n", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	log, err := limit.New(rdb, "partner", []limit.Policy{limit.SlidingLog{Limit: 1, Window: time.Hour}}, &limit.Options{Holds: true})
	if err != nil {
		t.Fatal(err)
	}
	good := heldLimiter(t, rdb, 1)
	for want, c := range map[string]struct {
		limiter *limit.Limiter
		opts    nethttp.TransportOptions
	}{
		"limiter is nil":           {nil, nethttp.TransportOptions{}},
		"set its Options.Holds":    {without, nethttp.TransportOptions{}},
		"Wait is -1s":              {good, nethttp.TransportOptions{Wait: -time.Second}},
		"MaxHold is 1ms":           {good, nethttp.TransportOptions{MaxHold: time.Millisecond}},
		"nethttp.NewTransport: ":   {nil, nethttp.TransportOptions{}},
		"check its error first":    {nil, nethttp.TransportOptions{}},
		"would be lost":            {without, nethttp.TransportOptions{}},
		"for no wait":              {good, nethttp.TransportOptions{Wait: -1}},
		"MaxHold is 2400h0m0s: us": {good, nethttp.TransportOptions{MaxHold: 100 * 24 * time.Hour}},
		"cannot settle":            {log, nethttp.TransportOptions{Settle: func(*http.Response) int64 { return 1 }}},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("got the panic %q, want %q in it", got, want)
				}
			}()
			nethttp.NewTransport(nil, c.limiter, nil, &c.opts)
		}()
	}
}

// TestOnErrorIsTold of decisions without Redis, and of a word that did not reach Redis.
func TestOnErrorIsTold(t *testing.T) {
	t.Parallel()
	srv, rdb := redistest.Miniredis(t)
	l, err := limit.New(rdb, "partner", []limit.Policy{limit.FixedWindow{Limit: 10, Window: time.Hour}}, &limit.Options{Holds: true, Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var told []error
	var sent atomic.Int64
	of := nethttp.NewTransport(says(&sent, 429), l, nil, &nethttp.TransportOptions{OnError: func(_ *http.Request, err error) { told = append(told, err) }})
	srv.SetError("NOPERM this user has no permissions")
	if status, denied := get(t, of, api); status != 429 || len(told) != 2 {
		t.Errorf("without Redis: got %d, %v, and OnError told of %v, want 429, and told of the decision and of the hold", status, denied, told)
	}
	if status, denied := get(t, of, api); denied == nil || !errors.Is(denied, outgoing.ErrOnHold) {
		t.Errorf("then: got %d, %v, want it on hold in this process", status, denied)
	}
	srv.SetError("")
	if status, denied := get(t, of, api); denied == nil || !errors.Is(denied, outgoing.ErrOnHold) || sent.Load() != 1 {
		t.Errorf("when Redis is back: got %d, %v and %d requests sent, want Redis told of the hold, and one", status, denied, sent.Load())
	}
	if d, err := l.Peek(t.Context(), "api.example.com"); err != nil || !d.OnHold() {
		t.Errorf("got held %t, %v, want Redis told of the hold", d.OnHold(), err)
	}
}

// TestOnErrorIsToldOfASettlement that was given up, with its request.
func TestOnErrorIsToldOfASettlement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := &redistest.CutClient{Client: redistest.BubbleClient(t, redistest.Bubble(t))}
		var told []error
		base := partner(func(*http.Request) (*http.Response, error) {
			rdb.Cut("refused")
			a := answerOf(200)
			a.Body = http.NoBody
			return a, nil
		})
		of := nethttp.NewTransport(base, heldLimiter(t, rdb, 10), nil, &nethttp.TransportOptions{
			Settle: func(*http.Response) int64 { return 3 },
			OnError: func(r *http.Request, err error) {
				if told = append(told, err); r.URL.String() != api {
					t.Errorf("told of %v with a request of %v, want %s", err, r.URL, api)
				}
			},
		})
		if status, denied := get(t, of, api); status != 200 || len(told) != 0 {
			t.Errorf("got %d, %v, and OnError told of %v, want 200 and nothing yet", status, denied, told)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		var dropped *limit.DroppedError
		if len(told) != 1 || !errors.As(told[0], &dropped) || dropped.Taken != 1 || dropped.Actual != 3 {
			t.Errorf("then: OnError was told of %v, want of the settlement that was given up", told)
		}
	})
}

// TestRequestsThatAreRefusedTogether put the host on hold once.
func TestRequestsThatAreRefusedTogether(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, process func() script.Client) {
		base := partner(func(*http.Request) (*http.Response, error) {
			time.Sleep(time.Second) // on its way
			a := answerOf(429)
			a.Body = http.NoBody
			return a, nil
		})
		of := nethttp.NewTransport(base, heldLimiter(t, process(), 1000), nil, nil)
		var all sync.WaitGroup
		for range 12 {
			all.Go(func() {
				if status, denied := get(t, of, api); status != 429 {
					t.Errorf("got %d, %v, want 429", status, denied)
				}
			})
		}
		all.Wait()
		if status, denied := get(t, of, api); denied == nil || denied.RetryAfter != time.Second {
			t.Errorf("then: got %d, %+v, want it on hold for a second", status, denied)
		}
	})
}

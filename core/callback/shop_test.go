package callback_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
	"github.com/neap-go/neap/nethttp"
)

// month is the longest Retention of a preset.
const month = 31 * 24 * time.Hour

func guard(t testing.TB, rdb redis.UniversalClient, prefix string, opts idempotency.Options) *idempotency.Guard {
	t.Helper()
	return guardOf(t, rdb, prefix, idempotency.Retry{}, opts)
}

func guardOf(t testing.TB, rdb redis.UniversalClient, prefix string, policy idempotency.Policy, opts idempotency.Options) *idempotency.Guard {
	t.Helper()
	opts.Retention, opts.DoubtRetention = month, month
	if opts.Budget == 0 {
		opts.Budget = 5 * time.Second // a busy machine answers late
	}
	g, err := idempotency.New(storetest.At(t, rdb, prefix), "callbacks", policy, &opts)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// signature is what the tests' deliveries are verified by.
const signature = "X-Demo-Signature"

var errUnsigned = errors.New("the demonstration's signature is missing")

func demoVerify(_ context.Context, d *callback.Delivery) ([]byte, error) {
	if d.Header.Get(signature) != "ok" {
		return nil, errUnsigned
	}
	return d.Body, nil
}

// shop books events and counts them.
type shop struct {
	mu     sync.Mutex
	booked map[string]int
	runs   int
	told   []error
	handle callback.Handler // runs before an event is booked
}

func (s *shop) book(ctx context.Context, e *callback.Event) error {
	s.mu.Lock()
	s.runs++
	handle := s.handle
	s.mu.Unlock()
	if handle != nil {
		if err := handle(ctx, e); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.booked == nil {
		s.booked = map[string]int{}
	}
	s.booked[e.Key]++
	return nil
}

func (s *shop) hear(_ context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, err)
}

// heard reports whether the hook was told of an error.
func (s *shop) heard(target error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, err := range s.told {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// counts returns how often the handler ran, and how much was booked.
func (s *shop) counts() (runs, bookings int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.booked {
		bookings += n
	}
	return s.runs, bookings
}

// once fails the test unless every event was booked once.
func (s *shop) once(t testing.TB, events int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.booked) != events {
		t.Errorf("%d events are booked, want %d: %v", len(s.booked), events, s.booked)
	}
	for key, n := range s.booked {
		if n != 1 {
			t.Errorf("%s is booked %d times, want once", key, n)
		}
	}
}

// endpoint serves a shop's callbacks over HTTP.
func endpoint(t testing.TB, p callback.Preset, g *idempotency.Guard, s *shop, opts callback.Options) http.Handler {
	t.Helper()
	opts.OnError = s.hear
	made, err := callback.New(p, g, demoVerify, s.book, &opts)
	if err != nil {
		t.Fatal(err)
	}
	return nethttp.Handler(made)
}

// response is an answer that a provider got.
type response struct {
	status int
	kind   string
	body   string
}

func deliver(h http.Handler, body string, header ...string) response {
	return deliverIn(context.Background(), h, body, header...)
}

func deliverIn(ctx context.Context, h http.Handler, body string, header ...string) response {
	r := httptest.NewRequestWithContext(ctx, "POST", "/callback", strings.NewReader(body))
	r.Header.Set(signature, "ok")
	for i := 0; i < len(header); i += 2 {
		if header[i+1] == "" {
			r.Header.Del(header[i])
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	text, _ := io.ReadAll(w.Body)
	return response{w.Code, w.Header().Get("Content-Type"), string(text)}
}

func of(r gate.Reply) response {
	kind := ""
	for _, f := range r.Header {
		if f.Name == "Content-Type" {
			kind = f.Value
		}
	}
	return response{r.Status, kind, string(r.Body)}
}

func (r response) is(t testing.TB, want gate.Reply) {
	t.Helper()
	if r != of(want) {
		t.Errorf("got %+v, want %+v", r, of(want))
	}
}

// each runs a test on each kind of Redis.
func each(t *testing.T, run func(t *testing.T, rdb redis.UniversalClient, prefix string)) {
	t.Helper()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) { run(t, rdb, prefix) })
}

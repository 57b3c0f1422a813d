package neighbours

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/nethttp"
)

// A page on another origin sends an order again until it has an answer: preflights are not
// counted, the page can read each field that it needs, and the order is placed once.
func TestCORS(t *testing.T) {
	t.Parallel()
	const origin = "https://shop.example"
	srv := redistest.Standalone(t)
	st, err := store.Open(srv.Client(t), &store.Options{Prefix: srv.Prefix(t)})
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := limit.New(st, "cors", []limit.Policy{limit.FixedWindow{Limit: 3, Window: time.Hour}}, &limit.Options{Budget: 10 * time.Second, Fail: store.FailClosed})
	if err != nil {
		t.Fatal(err)
	}
	guard, err := idempotency.New(st, "orders", idempotency.Retry{}, &idempotency.Options{Budget: 10 * time.Second, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	placed := 0
	place := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		placed++
		w.WriteHeader(http.StatusCreated)
	})
	gates := []gate.Gate{gate.RateLimit(limiter, gate.ByIP(nil), nil), gate.Idempotent(guard, gate.ByIP(nil), nil)}
	ask := func(h http.Handler, method string, header ...string) *http.Response {
		r := httptest.NewRequest(method, "/orders", nil)
		r.Header.Set("Origin", origin)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	h := CORS([]string{origin}, place, gates...)
	for range 10 {
		a := ask(h, "OPTIONS", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type,idempotency-key")
		if got := a.Header.Get("Access-Control-Allow-Headers"); a.StatusCode != http.StatusNoContent || !strings.EqualFold(got, "content-type,idempotency-key") {
			t.Fatalf("a preflight: got %d, %v, want it allowed", a.StatusCode, a.Header)
		}
	}
	exposed := func(a *http.Response, name string) bool {
		for one := range strings.SplitSeq(a.Header.Get("Access-Control-Expose-Headers"), ",") {
			if strings.EqualFold(strings.TrimSpace(one), name) {
				return a.Header.Get(name) != "" && a.Header.Get("Access-Control-Allow-Origin") == origin
			}
		}
		return false
	}
	for i, want := range []struct {
		status int
		fields []string
	}{
		{201, []string{"RateLimit", "RateLimit-Policy"}},
		{201, []string{"RateLimit", "RateLimit-Policy", "Idempotent-Replayed"}},
		{201, []string{"RateLimit", "RateLimit-Policy", "Idempotent-Replayed"}},
		{429, []string{"RateLimit", "RateLimit-Policy", "Retry-After"}},
	} {
		a := ask(h, "POST", "Idempotency-Key", "order-17")
		if a.StatusCode != want.status {
			t.Fatalf("request %d: got %d, want %d", i, a.StatusCode, want.status)
		}
		for _, name := range want.fields {
			if !exposed(a, name) {
				t.Errorf("request %d: got %v, want the page to read %s", i, a.Header, name)
			}
		}
	}
	if placed != 1 {
		t.Errorf("got the order placed %d times, want once", placed)
	}

	// The other way round, preflights use the limit up, and a page cannot read why it was refused.
	limiter, err = limit.NewLocal("wrong", []limit.Policy{limit.FixedWindow{Limit: 3, Window: time.Hour}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	wrong := nethttp.Middleware(gate.RateLimit(limiter, gate.Everyone, nil))(CORS([]string{origin}, place))
	for range 3 {
		ask(wrong, "OPTIONS", "Access-Control-Request-Method", "POST")
	}
	if a := ask(wrong, "POST"); a.StatusCode != 429 || a.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("with the gate outside: got %d, %v, or the page is too strict", a.StatusCode, a.Header)
	}
}

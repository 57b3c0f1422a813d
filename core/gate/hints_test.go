package gate_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/nethttp"
)

// logged returns what do logs, with the hints of the process not given yet.
func logged(t *testing.T, do func()) string {
	t.Helper()
	gate.ForgetHints()
	var text bytes.Buffer
	defer redistest.DefaultLog(t, slog.NewTextHandler(&text, nil))()
	do()
	return text.String()
}

// TestAHintOfAProxyThatIsNotListed: it is given once, and names no address.
func TestAHintOfAProxyThatIsNotListed(t *testing.T) { //nolint:paralleltest // it replaces slog.Default
	forwarded := map[string][]string{"X-Forwarded-For": {"203.0.113.9"}}
	for name, c := range map[string]struct {
		opts   *gate.IPOptions
		peer   string
		header map[string][]string
		want   int
	}{
		"a private peer":           {nil, "10.1.2.3:1", forwarded, 1},
		"a loopback peer":          {nil, "[::1]:1", forwarded, 1},
		"a peer of RFC 6598":       {nil, "100.64.1.2:1", forwarded, 1},
		"a public peer":            {nil, "198.51.100.7:1", forwarded, 0},
		"no field":                 {nil, "10.1.2.3:1", nil, 0},
		"a proxy that is listed":   {&gate.IPOptions{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, "10.1.2.3:1", forwarded, 0},
		"proxies are counted":      {&gate.IPOptions{TrustedHops: 1}, "10.1.2.3:1", forwarded, 0},
		"another proxy was listed": {&gate.IPOptions{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16")}}, "10.1.2.3:1", forwarded, 0},
	} {
		text := logged(t, func() {
			key := gate.ByIP(c.opts)
			for range 3 {
				if _, err := key(&request{peer: netip.MustParseAddrPort(c.peer), header: c.header}); err != nil {
					t.Errorf("%s: got %v, want a key", name, err)
				}
			}
		})
		if n := strings.Count(text, "TrustedProxies"); n != c.want || strings.Contains(text, "10.1.2.3") || strings.Contains(text, "203.0.113.9") {
			t.Errorf("%s: got %q, want %d lines with the remedy, and no address", name, text, c.want)
		}
	}
}

// TestAHintOfAGateThatDecidesTwice about one request, and not about two.
func TestAHintOfAGateThatDecidesTwice(t *testing.T) { //nolint:paralleltest // it replaces slog.Default
	slots, err := inflight.NewLocal("slots", 100, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, g := range map[string]gate.Gate{
		"a limit":            gate.RateLimit(hourly(t, 1e6), gate.Everyone, nil),
		"limits":             gate.RateLimits(gate.RateLimit(hourly(t, 1e6), gate.Everyone, nil), gate.RateLimit(hourly(t, 1e6), gate.Everyone, nil)),
		"requests in flight": gate.Concurrency(slots, gate.Everyone, nil),
	} {
		for want, mounted := range []gate.Gate{gate.Chain(g), gate.Chain(g, g)} {
			text := logged(t, func() {
				for range 3 {
					if p := mounted.Enter(&request{ctx: context.Background(), route: "/orders"}); p.Leave != nil {
						p.Leave(nil)
					}
				}
			})
			if n := strings.Count(text, "mount the gate once"); n != want || want == 1 && !strings.Contains(text, "/orders") {
				t.Errorf("%s, mounted %d times: got %q, want %d lines", name, want+1, text, want)
			}
		}
	}
}

// TestWhatCountsOnceIsNotHintedAt: a gate beside itself that counts a request once, and a gate that counts a request
// that a handler makes with the context of another. A member of limits is a gate like any other.
func TestWhatCountsOnceIsNotHintedAt(t *testing.T) { //nolint:paralleltest // it replaces slog.Default
	limits := func(opts *gate.RateLimitOptions) gate.RateLimitGate {
		return gate.RateLimit(hourly(t, 1e6), gate.Everyone, opts)
	}
	get := func(h http.Handler, ctx context.Context, path string) {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", path, nil))
	}
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	one, other := limits(nil), limits(nil)
	type inside struct{}
	skips := func(inner bool) *gate.RateLimitOptions {
		return &gate.RateLimitOptions{Skip: func(r gate.Request) bool { return !inner || r.Value(inside{}) == nil }}
	}
	for name, c := range map[string]struct {
		want int
		h    http.Handler
	}{
		"skipped by both": {0, func() http.Handler {
			mount := nethttp.Middleware(limits(skips(false)))
			return mount(mount(ok))
		}()},
		"skipped outside": {0, func() http.Handler {
			mount := nethttp.Middleware(limits(skips(true)))
			return mount(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mount(ok).ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), inside{}, true)))
			}))
		}()},
		"a request of the handler": {0, func() http.Handler {
			mount := nethttp.Middleware(limits(nil))
			inner := mount(ok)
			return mount(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { get(inner, r.Context(), "/inner") }))
		}()},
		"without a part of its path": {1, func() http.Handler {
			mount := nethttp.Middleware(limits(nil))
			return mount(http.StripPrefix("/x", mount(ok)))
		}()},
		"a member of limits outside": {1, nethttp.Middleware(gate.RateLimits(one, other))(nethttp.Middleware(other)(ok))},
		"a member of limits inside":  {1, nethttp.Middleware(other)(nethttp.Middleware(gate.RateLimits(one, other))(ok))},
	} {
		text := logged(t, func() { get(c.h, context.Background(), "/x/y") })
		if n := strings.Count(text, "mount the gate once"); n != c.want {
			t.Errorf("%s: got %q, want %d lines", name, text, c.want)
		}
	}
}

// TestAGateThatIsMountedTwiceInNetHTTP: it looks at the first requests alone.
func TestAGateThatIsMountedTwiceInNetHTTP(t *testing.T) { //nolint:paralleltest // it replaces slog.Default
	mount := nethttp.Middleware(gate.RateLimit(hourly(t, 1e6), gate.Everyone, nil))
	var marked atomic.Int64
	ok := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Context() != context.Background() {
			marked.Add(1)
		}
	})
	h := mount(ok)
	text := logged(t, func() {
		for range 2 * gate.Watched {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(context.Background(), "GET", "/", nil))
		}
	})
	if text != "" || marked.Load() != gate.Watched {
		t.Errorf("mounted once: got %q and %d requests that were looked at, want no line and %d", text, marked.Load(), gate.Watched)
	}
	mount = nethttp.Middleware(gate.RateLimit(hourly(t, 1e6), gate.Everyone, nil))
	text = logged(t, func() {
		mount(mount(ok)).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(context.Background(), "GET", "/", nil))
	})
	if !strings.Contains(text, "mount the gate once") {
		t.Errorf("mounted twice: got %q, want a line with the remedy", text)
	}
}

package quickstart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/nethttp"
)

func TestTheLogNamesNoKeyAndNoAddress(t *testing.T) {
	t.Parallel()
	const text = "neap:limit:key:{alice} at 10.0.0.1"
	limiter, err := limit.NewLocal("any", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err  error
		says string
	}{
		{&script.Error{Class: script.ErrNotExecuted, Err: errors.New(text)}, "not executed"},
		{&script.Error{Class: script.ErrMaybeExecuted, Err: errors.New(text)}, "maybe executed"},
		{fmt.Errorf("%w: %s", gate.ErrWiring, text), "wrong wiring"},
		{fmt.Errorf("%s: %w", text, context.DeadlineExceeded), "deadline exceeded"},
		{errors.New(text), "another error"},
	} {
		var log bytes.Buffer
		g := gate.RateLimit(limiter,
			func(gate.Request) (string, error) { return "", c.err },
			&gate.RateLimitOptions{OnError: report(slog.New(slog.NewTextHandler(&log, nil)))})
		nethttp.Middleware(g)(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(),
			httptest.NewRequest("GET", "/key", nil))
		if line := log.String(); !strings.Contains(line, c.says) ||
			strings.Contains(line, "alice") || strings.Contains(line, "10.0.0.1") {
			t.Errorf("got the log %q, want it to say %q and to name no key and no address", line, c.says)
		}
	}
}

// served is a route's gate on net/http, around a handler.
func served(
	t *testing.T, path string, shadowed func(limiter, policy string), handler http.Handler,
) func(address, target string) int {
	t.Helper()
	w := wire(embedded(t), demoBudget, shadowed)
	all := routes(w)
	if w.err != nil {
		t.Fatal(w.err)
	}
	at := slices.IndexFunc(all, func(r Route) bool { return r.Path == path })
	h := nethttp.Middleware(all[at].Gate)(handler)
	return func(address, target string) int {
		r := httptest.NewRequest("GET", target, nil)
		r.RemoteAddr = address + ":1"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
}

func TestAShadowIsReportedWithoutTheAddress(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	ask := served(t, "/shadow", reportShadow(slog.New(slog.NewTextHandler(&log, nil))), http.NotFoundHandler())
	for range shadow.Limit + 2 {
		ask("192.0.2.7", "/shadow")
	}
	if text := log.String(); strings.Count(text, "limiter=shadow policy=window-2-10s") != 2 ||
		strings.Count(text, "\n") != 2 || strings.Contains(text, "192.0.2.7") {
		t.Errorf("got the log %q, want 2 lines that name the limiter and the policy, and no address", text)
	}
}

// TestInFlightIsForAllClientsTogether has each request sent by the handler of
// the one before, from another address.
func TestInFlightIsForAllClientsTogether(t *testing.T) {
	t.Parallel()
	var ask func(address, target string) int
	var statuses []int
	ask = served(t, "/inflight", nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if n := len(statuses); n < running {
			statuses = append(statuses, 0)
			statuses[n] = ask(fmt.Sprintf("192.0.2.%d", n), "/inflight?ms=0")
		}
	}))
	got, want := ask("198.51.100.1", "/inflight?ms=0"), []int{200, 429}
	if got != 200 || !slices.Equal(statuses, want) {
		t.Errorf("got %d, and within it %v, want 200, and within it %v", got, statuses, want)
	}
}

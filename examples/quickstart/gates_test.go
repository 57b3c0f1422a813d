package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
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
		nethttp.Middleware(g)(nethttp.Handler(unlimited{})).ServeHTTP(httptest.NewRecorder(),
			httptest.NewRequest("GET", "/key", nil))
		if line := log.String(); !strings.Contains(line, c.says) ||
			strings.Contains(line, "alice") || strings.Contains(line, "10.0.0.1") {
			t.Errorf("%v: %s", c.err, line)
		}
	}
}

package gate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// outage is a gate whose Redis refuses every call.
func outage(t *testing.T, fail store.FailMode, headers gate.Headers, h *hook) gate.Gate {
	t.Helper()
	l, err := limit.New(deadRedis{errNoPerm}, "test",
		[]limit.Policy{limit.FixedWindow{Name: "w", Limit: 3, Window: time.Hour}}, &limit.Options{Fail: fail, Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return gate.RateLimit(l, everyone, &gate.RateLimitOptions{Headers: headers, OnError: h.hear})
}

// limitFields are all that a limiter may send.
var limitFields = []string{
	"Ratelimit", "Ratelimit-Policy", "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset",
	"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset",
}

// Without Redis, FailLocal admits what the policy admits and reports that. The hook is
// told of every request.
func TestOutageFailLocal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var h hook
		g := outage(t, store.FailLocal, gate.HeadersIETF, &h)
		for i, want := range []struct {
			status    int
			rateLimit string
		}{
			{200, `"w";r=2;t=3600`}, {200, `"w";r=1;t=3600`}, {200, `"w";r=0;t=3600`}, {429, `"w";r=0;t=3600`}, {429, `"w";r=0;t=3600`},
		} {
			p := g.Enter(&request{})
			fields := p.Header
			if p.Reply != nil {
				fields = p.Reply.Header
				if got := single(t, fields, "Retry-After"); got != "3600" {
					t.Errorf("request %d: got Retry-After %s, want 3600", i, got)
				}
			}
			if status(p) != want.status || single(t, fields, "Ratelimit") != want.rateLimit || single(t, fields, "Ratelimit-Policy") != `"w";q=3;w=3600` {
				t.Errorf("request %d: got %d with %+v, want %+v", i, status(p), fields, want)
			}
			if err := h.take(); !errors.Is(err, script.ErrConfiguration) {
				t.Errorf("request %d: the hook was told %v, want %v", i, err, script.ErrConfiguration)
			}
		}
	})
}

// FailOpen admits everything and has no numbers to report.
func TestOutageFailOpen(t *testing.T) {
	t.Parallel()
	for headers := range gate.HeadersNone + 1 {
		var h hook
		g := outage(t, store.FailOpen, headers, &h)
		for i := range 10 {
			p := g.Enter(&request{})
			if p.Reply != nil || len(p.Header) != 0 {
				t.Errorf("headers %d, request %d: got %d with %+v, want it admitted without fields",
					headers, i, status(p), p.Header)
			}
			if err := h.take(); !errors.Is(err, script.ErrConfiguration) {
				t.Errorf("headers %d, request %d: the hook was told %v, want %v",
					headers, i, err, script.ErrConfiguration)
			}
		}
	}
}

// Without Redis, a subject that this process knows to be banned gets the answer of a
// denial, also where FailOpen admits all others.
func TestOutageOfABan(t *testing.T) {
	t.Parallel()
	for _, fail := range []store.FailMode{store.FailLocal, store.FailOpen} {
		synctest.Test(t, func(t *testing.T) {
			l, err := limit.New(deadRedis{errNoPerm}, "test", []limit.Policy{
				limit.WithBan(limit.FixedWindow{Name: "w", Limit: 3, Window: time.Minute}, limit.Ban{After: 1, Within: time.Hour, For: time.Hour}),
			}, &limit.Options{Fail: fail, Budget: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Ban(t.Context(), "banned", time.Hour); !errors.Is(err, script.ErrConfiguration) {
				t.Fatalf("Ban without Redis: got %v, want ErrConfiguration", err)
			}
			if p := gate.RateLimit(l, everyone, nil).Enter(&request{}); p.Reply != nil {
				t.Errorf("%v: a subject that is not banned: got %+v, want it admitted", fail, p.Reply)
			}
			p := gate.RateLimit(l, fixed("banned"), nil).Enter(&request{})
			if status(p) != 429 || single(t, p.Reply.Header, "Retry-After") != "3600" || single(t, p.Reply.Header, "Ratelimit") != `"w";r=0;t=3600` {
				t.Errorf("%v: a banned subject: got %d with %+v, want 429 for an hour", fail, status(p), p.Reply)
			}
		})
	}
}

// FailClosed admits nothing. The answer blames the server and not a limit.
func TestOutageFailClosed(t *testing.T) {
	t.Parallel()
	var h hook
	g := outage(t, store.FailClosed, gate.HeadersIETF, &h)
	for range 10 {
		p := g.Enter(&request{})
		if status(p) != 503 || single(t, p.Reply.Header, "Retry-After") != "1" {
			t.Fatalf("got %+v, want 503 and Retry-After: 1", p.Reply)
		}
		for _, name := range limitFields {
			if got := lines(p.Reply.Header, name); got != nil {
				t.Errorf("got %s: %q, want none", name, got)
			}
		}
		if err := h.take(); !errors.Is(err, script.ErrConfiguration) {
			t.Errorf("the hook was told %v, want %v", err, script.ErrConfiguration)
		}
	}
}

// If a client went away, that is no outage in any mode, and takes nothing.
func TestOutageOfAClient(t *testing.T) {
	t.Parallel()
	gone, leave := context.WithCancel(context.Background())
	leave()
	for _, fail := range []store.FailMode{store.FailLocal, store.FailOpen, store.FailClosed} {
		var h hook
		p := outage(t, fail, gate.HeadersIETF, &h).Enter(&request{ctx: gone})
		if err := h.take(); status(p) != 503 || err != nil {
			t.Errorf("%v: got %d, and the hook told %v, want 503 and nothing told", fail, status(p), err)
		}
	}
}

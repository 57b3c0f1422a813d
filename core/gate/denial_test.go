package gate_test

import (
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/lock"
)

func TestRender(t *testing.T) {
	t.Parallel()
	var seen []gate.Denial
	render := func(d gate.Denial) gate.Reply {
		seen = append(seen, d)
		switch d.Status {
		case 400:
			return gate.Reply{Status: 422, Body: []byte("bad"), Header: []gate.Field{{Name: "cache-control", Value: "private"}}}
		case 429:
			return gate.Reply{Body: []byte(d.Title), Header: []gate.Field{
				{Name: "Content-Type", Value: "text/plain"}, {Name: "retry-after", Value: "99"}, {Name: "X-Own", Value: "1"},
			}}
		}
		return gate.Reply{}
	}
	g := gate.RateLimit(hourly(t, 1), gate.ByHeader("X-Api-Key"), &gate.RateLimitOptions{Render: render})
	if p := g.Enter(&request{}); status(p) != 422 || single(t, p.Reply.Header, "cache-control") != "private" || len(p.Reply.Header) != 1 {
		t.Errorf("without a key: got %+v, want 422 with the rendered cache-control alone", p.Reply)
	}
	g.Enter(with("X-Api-Key", "k"))
	p := g.Enter(with("X-Api-Key", "k"))
	if status(p) != 429 || string(p.Reply.Body) != seen[1].Title {
		t.Errorf("over the limit: got %+v, want 429 with the body %q", p.Reply, seen[1].Title)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/plain", "retry-after": "99", "X-Own": "1", "Cache-Control": "no-store",
		"Ratelimit": `"hourly";r=0;t=3600`, "Ratelimit-Policy": `"hourly";q=1;w=3600`,
	} {
		if got := single(t, p.Reply.Header, name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	if len(lines(p.Reply.Header, "Retry-After")) != 0 {
		t.Error("got a Retry-After in addition to the rendered retry-after, want only the rendered one")
	}
	if d := seen[1]; d.Decision == nil || d.Decision.Allowed || d.Decision.Policy != "hourly" || d.RetryAfter <= 59*time.Minute || d.Type == "" || len(d.Header) != 4 {
		t.Errorf("got the denial %+v, want one by hourly, to retry in an hour, with a type and four fields", d)
	}
	if d := seen[0]; d.Decision != nil || d.RetryAfter != 0 || d.Type != "" || d.Title == "" {
		t.Errorf("without a key: got the denial %+v, want a title and neither decision, type nor time to retry", d)
	}
	down := gate.RateLimit(dead(t), everyone, &gate.RateLimitOptions{Render: render})
	if p := down.Enter(&request{}); status(p) != 503 || single(t, p.Reply.Header, "Retry-After") != "1" {
		t.Errorf("without Redis: got %+v, want 503 and Retry-After: 1", p.Reply)
	}
}

// A Render that changes what it is given changes its own copy.
func TestRenderOwnsItsDenial(t *testing.T) {
	t.Parallel()
	g := gate.RateLimit(hourly(t, 1), everyone, &gate.RateLimitOptions{Render: func(d gate.Denial) gate.Reply {
		for i := range d.Header {
			d.Header[i] = gate.Field{Name: "X-Scratch"}
		}
		return gate.Reply{}
	}})
	g.Enter(&request{})
	if p := g.Enter(&request{}); len(lines(p.Reply.Header, "X-Scratch")) != 0 || single(t, p.Reply.Header, "Retry-After") != "3600" {
		t.Errorf("got the fields %+v, want Retry-After: 3600 and no X-Scratch", p.Reply.Header)
	}
}

// Every 429 has Retry-After, also one with which a Key refuses.
func TestRefused429SaysWhenToRetry(t *testing.T) {
	t.Parallel()
	g := gate.RateLimit(hourly(t, 1), func(gate.Request) (string, error) { return "", gate.Refuse(429, "Not you") }, nil)
	if p := g.Enter(&request{}); status(p) != 429 || single(t, p.Reply.Header, "Retry-After") != "1" {
		t.Errorf("got %+v, want 429 and Retry-After: 1", p.Reply)
	}
}

// A Render may put the request's id into the answer and use the request's language.
func TestRenderHasTheRequest(t *testing.T) {
	t.Parallel()
	render := func(d gate.Denial) gate.Reply {
		if d.Request == nil {
			return gate.Reply{Body: []byte("no request")}
		}
		if d.Request.Header("X-Request-Id") == nil { // the request that comes first
			return gate.Reply{}
		}
		return gate.Reply{
			Header: []gate.Field{{Name: "X-Request-Id", Value: d.Request.Header("X-Request-Id")[0]}},
			Body:   []byte(d.Request.Header("Accept-Language")[0]),
		}
	}
	limited := &gate.RateLimitOptions{Render: render}
	held, _ := locks(t, lock.Options{})
	for want, gates := range map[int][]gate.Gate{
		400: {gate.RateLimit(hourly(t, 1), gate.ByHeader("X-Api-Key"), limited)},
		409: {gate.Exclusive(held, everyone, &gate.ExclusiveOptions{Render: render})},
		429: {
			gate.RateLimit(hourly(t, 1), everyone, limited),
			gate.Concurrency(inFlight(t, 1), everyone, &gate.ConcurrencyOptions{Render: render}),
		},
		500: {gate.RateLimit(hourly(t, 1), gate.ByRoute(), limited)},
		503: {gate.RateLimit(dead(t), everyone, limited)},
	} {
		for i, g := range gates {
			r := with("X-Request-Id", "r-17")
			r.header["Accept-Language"] = []string{"de"}
			g.Enter(&request{})
			p := g.Enter(r)
			if status(p) != want || string(p.Reply.Body) != "de" || single(t, p.Reply.Header, "X-Request-Id") != "r-17" {
				t.Errorf("gate %d: got %d %q with %+v, want %d in the language and with the id of the request",
					i, status(p), p.Reply.Body, p.Reply.Header, want)
			}
		}
	}
}

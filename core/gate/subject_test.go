package gate_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/nethttp"
)

type signedIn struct{}

// ownKey is a key of the user's own, which reads the context.
func ownKey(r gate.Request) (string, error) {
	user, ok := r.Context().Value(signedIn{}).(string)
	if !ok {
		return "", gate.ErrMissing
	}
	return user, nil
}

func byMethod(r gate.Request) (string, error) { return r.Method(), nil }

// TestSubject sends a request through a gate, and finds the permits that it took under
// the subject that Subject makes from the request's values.
func TestSubject(t *testing.T) {
	t.Parallel()
	text := func(name, value string) map[string]string { return map[string]string{name: value} }
	loopback := netip.MustParseAddr("127.0.0.1")
	proxied := gate.ByIP(&gate.IPOptions{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	login := gate.Join(gate.Fold(gate.ByForm("email", nil)), gate.ByIP(nil))
	for name, c := range map[string]struct {
		key    gate.Key
		values gate.Values

		target, body string // "/a" unless it says otherwise
		lines        map[string]string
	}{
		"peer":           {key: gate.ByIP(nil), values: gate.Values{Addr: loopback}},
		"behind a proxy": {key: proxied, values: gate.Values{Addr: netip.MustParseAddr("203.0.113.9")}, lines: text("X-Forwarded-For", "203.0.113.9")},
		"behind a hop":   {key: gate.ByIP(&gate.IPOptions{TrustedHops: 1}), values: gate.Values{Addr: netip.MustParseAddr("203.0.113.9")}, lines: text("X-Forwarded-For", "203.0.113.9")},
		"grouped":        {key: gate.ByIP(&gate.IPOptions{IPv4Prefix: 8}), values: gate.Values{Addr: netip.MustParseAddr("127.9.9.9")}},
		"IPv6":           {key: proxied, values: gate.Values{Addr: netip.MustParseAddr("2001:db8::1")}, lines: text("X-Forwarded-For", "2001:db8::2")},
		"handed on":      {key: gate.ByIP(&gate.IPOptions{FromContext: addrIn}), values: gate.Values{Addr: netip.MustParseAddr("203.0.113.9")}},
		"header":         {key: gate.ByHeader("X-API-Key"), values: gate.Values{Header: text("x-api-key", "a b")}, lines: text("X-Api-Key", "a b")},
		"host":           {key: gate.ByHeader("Host"), values: gate.Values{Host: "a.example"}, lines: text("Host", "a.example")},
		"route":          {key: gate.ByRoute(), values: gate.Values{Route: "/users/{id}"}, target: "/users/7"},
		"parameter": {
			key: gate.ByParam("id"), target: "/users/a%2Fb",
			values: gate.Values{Route: "/users/{id}", Params: text("id", "a/b")},
		},
		"wildcard": {
			key: gate.ByParam("..."), target: "/files/a/b",
			values: gate.Values{Route: "/files/{...}", Params: text("...", "a/b")},
		},
		"path":  {key: gate.ByPath(), values: gate.Values{Path: "/users/caf%c3%a9"}, target: "/users/caf%C3%A9"},
		"query": {key: gate.ByQuery("user"), values: gate.Values{Query: text("user", "a&b=c")}, target: "/a?user=a%26b%3dc"},
		"form": {
			key: gate.ByForm("email", nil), values: gate.Values{Form: text("email", "bob+1@example.com")},
			body: "password=x&email=bob%2B1%40example.com", lines: text("Content-Type", "application/x-www-form-urlencoded"),
		},
		"JSON": {
			key: gate.ByJSON("/payer/id", nil), values: gate.Values{JSON: map[string]any{"payer": map[string]any{"id": 17}}},
			body: `{"payer":{"name":"<Bob>","id":17}}`, lines: text("Content-Type", "application/json"),
		},
		"value":         {key: gate.ByValue("user", signedIn{}), values: gate.Values{Stored: map[any]any{signedIn{}: "ann"}}},
		"key of my own": {key: gate.Tag("user", ownKey), values: gate.Values{Stored: map[any]any{signedIn{}: "ann"}}},
		"the first":     {key: gate.FirstOf(gate.ByHeader("X-Api-Key"), gate.ByIP(nil)), values: gate.Values{Addr: loopback, Header: text("X-Api-Key", "k")}, lines: text("X-Api-Key", "k")},
		"the next":      {key: gate.FirstOf(gate.ByHeader("X-Api-Key"), gate.ByIP(nil)), values: gate.Values{Addr: loopback}},
		"login": {
			key: login, values: gate.Values{Addr: loopback, Form: text("email", "strasse@example.com")},
			body: "email=STRA%C3%9FE%40Example.com", lines: text("Content-Type", "application/x-www-form-urlencoded"),
		},
		"method":   {key: gate.Tag("method", byMethod), values: gate.Values{Method: "POST"}},
		"everyone": {key: gate.Everyone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limiter := local(t, limit.FixedWindow{Limit: 5, Window: time.Hour})
			mux := http.NewServeMux()
			for _, pattern := range []string{"/a", "/users/{id}", "/files/{rest...}"} {
				mux.Handle(pattern, nethttp.Middleware(gate.RateLimit(limiter, c.key, nil))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
			}
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				found := context.WithValue(r.Context(), addrKey{}, netip.MustParseAddr("203.0.113.9"))
				mux.ServeHTTP(w, r.WithContext(context.WithValue(found, signedIn{}, "ann")))
			}))
			defer srv.Close()
			target := c.target
			if target == "" {
				target = "/a"
			}
			r, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL+target, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			for name, line := range c.lines {
				r.Header.Set(name, line)
			}
			r.Host = r.Header.Get("Host")
			resp, err := srv.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Fatalf("the request got %d %s, want 200", resp.StatusCode, answer)
			}
			subject, err := gate.Subject(c.key, c.values)
			if err != nil {
				t.Fatal(err)
			}
			if d, err := limiter.Peek(t.Context(), subject); err != nil || d.Remaining != 4 {
				t.Errorf("%q has %d left, %v, want 4", subject, d.Remaining, err)
			}
			if found, err := limiter.Reset(t.Context(), subject); err != nil || !found {
				t.Errorf("Reset of %q: got %t, %v, want true", subject, found, err)
			}
			if d, err := limiter.Peek(t.Context(), subject); err != nil || d.Remaining != 5 {
				t.Errorf("after Reset, %q has %d left, %v, want 5", subject, d.Remaining, err)
			}
		})
	}
}

// TestSubjectFails: the error says what the values lack, and is not a refusal that a gate
// would answer with.
func TestSubjectFails(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	some := map[string]string{"user": "ann"}
	for _, c := range []struct {
		key    gate.Key
		values gate.Values
		want   string
	}{
		{gate.ByHeader("X-Api-Key"), gate.Values{}, "header field X-Api-Key"},
		{gate.ByHeader("Host"), gate.Values{}, "header field Host"},
		{gate.ByQuery("user"), gate.Values{}, "query parameter user"},
		{gate.ByForm("email", nil), gate.Values{Form: some}, "form field email"},
		{gate.ByForm("user", nil), gate.Values{Form: some, Query: some}, "user is in the query"},
		{gate.ByForm("user", nil), gate.Values{JSON: some}, "not a form"},
		{gate.ByForm("user", &gate.BodyOptions{MaxBody: 3}), gate.Values{Form: some}, "larger than the limit"},
		{gate.ByJSON("/id", nil), gate.Values{JSON: some}, "lacks /id"},
		{gate.ByJSON("/id", nil), gate.Values{Form: some}, "not JSON"},
		{gate.ByJSON("/id", nil), gate.Values{}, "no body"},
		{gate.ByJSON("/id", nil), gate.Values{JSON: func() {}}, "Values.JSON"},
		{gate.ByJSON("/user", nil), gate.Values{JSON: some, Form: some}, "both Form and JSON"},
		{gate.ByIP(nil), gate.Values{}, "ByIP reads Values.Addr"},
		{gate.ByIP(&gate.IPOptions{TrustedHops: 1}), gate.Values{}, "ByIP reads Values.Addr"},
		{gate.ByIP(&gate.IPOptions{FromContext: func(context.Context) netip.Addr { return netip.Addr{} }}), gate.Values{}, "ByIP reads Values.Addr"},
		{gate.ByRoute(), gate.Values{}, "ByRoute reads Values.Route"},
		{gate.ByParam("id"), gate.Values{Params: some}, "ByParam reads Values.Route"},
		{gate.ByParam("user"), gate.Values{Route: "/users/{user}"}, "parameter user"},
		{gate.ByPath(), gate.Values{Path: "/%zz"}, "path"},
		{gate.ByValue("user", "user"), gate.Values{}, "not authenticated"},
		{gate.Join(gate.ByQuery("user"), gate.ByIP(nil)), gate.Values{Query: some}, "Values.Addr"},
		{gate.ByQuery("user"), gate.Values{Query: map[string]string{"user": strings.Repeat("a", 2000)}}, "too long"},
		{failing(boom), gate.Values{}, "boom"},
		{failing(errors.Join(gate.ErrMissing, boom)), gate.Values{}, "boom"},
		{fixed(""), gate.Values{}, "empty"},
		{nethttp.Key(func(*http.Request) (string, error) { return "a", nil }), gate.Values{}, "nethttp"},
	} {
		got, err := gate.Subject(c.key, c.values)
		if err == nil || got != "" || !strings.HasPrefix(err.Error(), "gate.Subject: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %q, %v, want an error of gate.Subject with %q", got, err, c.want)
			continue
		}
		g := gate.RateLimit(local(t, limit.FixedWindow{Limit: 1, Window: time.Hour}), failing(err), nil)
		if p := g.Enter(&request{}); p.Reply == nil || p.Reply.Status != 500 {
			t.Errorf("%v: a gate answers %+v with it, want 500", err, p.Reply)
		}
	}
	if _, err := gate.Subject(failing(boom), gate.Values{}); !errors.Is(err, boom) {
		t.Errorf("got %v, want the key's own error in it", err)
	}
}

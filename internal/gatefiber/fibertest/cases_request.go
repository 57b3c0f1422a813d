package fibertest

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatetest"
	"github.com/neap-go/neap/internal/gatefake"
)

// answering is an application with one endpoint behind middleware. It answers with what
// report returns for the request.
func answering(pattern string, report func(gate.Request) string, around ...gatetest.Middleware) gatetest.App {
	return gatetest.App{Routes: []gatetest.Route{{
		Method: "GET", Pattern: pattern, Around: around,
		Endpoint: gatefake.Endpoint(func(q gate.Request) gate.Reply { return gate.Reply{Status: 200, Body: []byte(report(q))} }),
	}}}
}

// hostBehindAProxy: a gate does not believe X-Forwarded-Host, though Fiber does.
func hostBehindAProxy(t *testing.T, d Driver) {
	hostname := ""
	address := d.Serve(t, Config{TrustLoopback: true}, answering("/",
		func(q gate.Request) string { return hostname + " " + q.Host() },
		func(x gatetest.Exchange, next func() error) error {
			hostname = d.Hostname(x)
			return next()
		}))
	if got := get(t, address, "/", "X-Forwarded-Host: evil.example"); got != "200 evil.example example.com" {
		t.Errorf("got %q, want \"200 evil.example example.com\"", got)
	}
}

// hostOfATarget: if fasthttp finds a host in a target, a gate finds the same.
func hostOfATarget(t *testing.T, d Driver) {
	hostname := ""
	address := d.Serve(t, Config{}, answering("/{...}",
		func(q gate.Request) string { return hostname + " " + q.Host() },
		func(x gatetest.Exchange, next func() error) error {
			hostname = d.Hostname(x)
			return next()
		}))
	for target, host := range map[string]string{
		"/detail": "a", "//b/detail": "a", "//b/detail?u=://": "b", "http://b/detail": "b", "/detail?u=//b": "a",
	} {
		if got := answered(t, address, "GET "+target+" HTTP/1.1\r\nHost: a\r\n\r\n"); got != "200 "+host+" "+host {
			t.Errorf("%s: got %q, want %s twice", target, got, host)
		}
	}
}

// headerNames: names are canonical even where Fiber leaves them as they are.
func headerNames(t *testing.T, d Driver) {
	address := d.Serve(t, Config{DisableHeaderNormalizing: true}, answering("/detail", func(q gate.Request) string {
		var names []string
		for name := range q.Headers() {
			names = append(names, name)
		}
		return fmt.Sprint(q.Header("X-Api-Key"), q.Header("x-api-KEY"), names, slices.IsSorted(names))
	}))
	if got, want := get(t, address, "/detail", "x-api-key: 1", "X-API-KEY: 2"), "200 [1 2] [1 2] [X-Api-Key X-Api-Key] true"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// headerOrder: a gate sees the lines of a field in the order in which they were sent.
// When middleware removes a line, fasthttp may put the last of all lines in its place. In
// that order another address of X-Forwarded-For would be the last.
func headerOrder(t *testing.T, d Driver) {
	key := gate.ByIP(&gate.IPOptions{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	address := d.Serve(t, Config{}, gated(told(func(q gate.Request) string {
		var all []string
		for name, line := range q.Headers() {
			if name == "X-Forwarded-For" {
				all = append(all, line)
			}
		}
		ip, err := key(q)
		return fmt.Sprint(q.Header("X-Forwarded-For"), " ", all, " ", ip, " ", err)
	}), d.before(func(rc *fasthttp.RequestCtx) { rc.Request.Header.Del("X-Stripped") })))
	got := get(t, address, "/detail", "X-Stripped: 1", "X-Forwarded-For: 6.6.6.6", "X-Forwarded-For: 8.8.8.8", "X-Forwarded-For: 9.9.9.9")
	if want := "200 [6.6.6.6 8.8.8.8 9.9.9.9] [6.6.6.6 8.8.8.8 9.9.9.9] ip=9.9.9.9 <nil>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// fragments: what follows a "#" is not part of the target, for a gate as for a handler.
func fragments(t *testing.T, d Driver) {
	address := d.Serve(t, Config{}, answering("/detail", func(q gate.Request) string { return q.Path() + " " + q.RawQuery() }))
	for target, want := range map[string]string{
		"/detail#0":                              "200 /detail ",
		"/detail#0?q=1":                          "200 /detail ",
		"/detail?q=1#?#0":                        "200 /detail q=1",
		"/detail?q=%230":                         "200 /detail q=%230",
		"http://example.com/detail?q=1#http://0": "200 /detail q=1",
	} {
		if got := get(t, address, target); got != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}

type userID string

// valuesKept: middleware that stores what Fiber's getters return stores memory that is
// used again. What a gate reads from it, and a key made from that, stays as it is.
func valuesKept(t *testing.T, d Driver) {
	var kept []any
	var keys, methods []string
	key := d.Key(func(rc *fasthttp.RequestCtx) (string, error) { return lent(rc.Request.Header.Peek("X-User")), nil })
	address := d.Serve(t, Config{}, gated(told(func(q gate.Request) string {
		methods = append(methods, q.Method())
		for _, name := range []string{"string", "named", "bytes", "number", "missing"} {
			kept = append(kept, q.Value(name))
		}
		k, _ := key(q)
		keys = append(keys, k)
		return "ok"
	}), func(x gatetest.Exchange, next func() error) error {
		user := d.RequestCtx(x).Request.Header.Peek("X-User")
		x.SetValue("string", lent(user))
		x.SetValue("named", userID(lent(user)))
		x.SetValue("bytes", user)
		x.SetValue("number", 7)
		return next()
	}))
	var raw strings.Builder
	for _, sent := range []string{"GET alice", "PUT bobby", "DELETE carol"} {
		method, user, _ := strings.Cut(sent, " ")
		fmt.Fprintf(&raw, "%s / HTTP/1.1\r\nHost: example.com\r\nX-User: %s\r\nContent-Length: 0\r\n\r\n", method, user)
	}
	if got := exchanged(t, address, raw.String()); len(got) != 3 {
		t.Fatalf("got %q, want three answers", got)
	}
	if want := []any{"alice", userID("alice"), []byte("alice"), 7, nil}; !reflect.DeepEqual(kept[:5], want) {
		t.Errorf("what was %q is now %q, want no change", want, kept[:5])
	}
	if !slices.Equal(keys, []string{"alice", "bobby", "carol"}) {
		t.Errorf("the keys are now %q, want alice, bobby and carol", keys)
	}
	if !slices.Equal(methods, []string{"GET", "PUT", "DELETE"}) {
		t.Errorf("the methods are now %q, want GET, PUT and DELETE", methods)
	}
}

package gatehttp_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"

	"github.com/neap-go/neap/core/gate/adapter"
	"github.com/neap-go/neap/internal/gatehttp"
)

func TestSplitTarget(t *testing.T) {
	t.Parallel()
	for target, want := range map[string][2]string{
		"":                         {"", ""},
		"/":                        {"/", ""},
		"/a%2Fb?x=1?y#z":           {"/a%2Fb", "x=1?y#z"},
		"//a":                      {"//a", ""},
		"/a?b=http://c/d":          {"/a", "b=http://c/d"},
		"/a://b/c":                 {"/a://b/c", ""},
		"*":                        {"*", ""},
		"example.com:443":          {"", ""},
		"http://example.com":       {"/", ""},
		"http://example.com?q":     {"/", "q"},
		"HTTPS://u@h:1/a/../b?q=1": {"/a/../b", "q=1"},
	} {
		if path, query := adapter.SplitTarget(target); path != want[0] || query != want[1] {
			t.Errorf("%q: got %q and %q, want %q", target, path, query, want)
		}
	}
}

// TestRequestMadeInATest has no RequestURI.
func TestRequestMadeInATest(t *testing.T) {
	t.Parallel()
	r, err := http.NewRequest("GET", "http://example.com/a%2Fb?x=%20", nil)
	if err != nil {
		t.Fatal(err)
	}
	q := gatehttp.Request{HTTP: r}
	if q.Path() != "/a%2Fb" || q.RawQuery() != "x=%20" || q.Host() != "example.com" {
		t.Errorf("got %q, %q, %q, want \"/a%%2Fb\", \"x=%%20\", \"example.com\"", q.Path(), q.RawQuery(), q.Host())
	}
	q.HTTP.URL = &url.URL{Path: "/a b"}
	if q.Path() != "/a%20b" {
		t.Errorf("got %q, want \"/a%%20b\"", q.Path())
	}
}

func TestRemoteAddr(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]netip.AddrPort{
		"192.0.2.1:1234":       netip.MustParseAddrPort("192.0.2.1:1234"),
		"[2001:db8::1%eth0]:1": netip.MustParseAddrPort("[2001:db8::1%eth0]:1"),
		"192.0.2.1":            netip.MustParseAddrPort("192.0.2.1:0"),
		"2001:db8::1":          netip.MustParseAddrPort("[2001:db8::1]:0"),
		"[2001:db8::1]":        netip.MustParseAddrPort("[2001:db8::1]:0"),
		"[2001:db8::1%eth0]":   netip.MustParseAddrPort("[2001:db8::1%eth0]:0"),
		"[192.0.2.1]":          {},
		"@":                    {},
		"":                     {},
		"localhost:80":         {},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = said
		if got := (gatehttp.Request{HTTP: r}).RemoteAddr(); got != want {
			t.Errorf("%q: got %v, want %v", said, got, want)
		}
	}
}

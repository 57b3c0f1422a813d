package gate_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/neap-go/neap/core/gate"
)

func fixed(s string) gate.Key {
	return func(gate.Request) (string, error) { return s, nil }
}

func failing(err error) gate.Key {
	return func(gate.Request) (string, error) { return "", err }
}

func TestJoinIsUnambiguous(t *testing.T) {
	t.Parallel()
	seen := map[string][]string{}
	for _, parts := range [][]string{
		{"a"}, {"a", "b"}, {"ab"}, {"a", "b", "c"}, {"ab", "c"}, {"a", "bc"}, {"a:b"}, {"1:a"}, {"1:a1:b"},
		{"a1:b"}, {"a", "1:b"}, {"1:a", "b"}, {"join=1:a"}, {"a\x00b"}, {"a", "\x00b"},
	} {
		var keys []gate.Key
		for _, p := range parts {
			keys = append(keys, fixed(p))
		}
		got, err := gate.Join(keys...)(&request{})
		if err != nil {
			t.Fatalf("%q: got the error %v, want none", parts, err)
		}
		if other, dup := seen[got]; dup {
			t.Errorf("%q and %q are both %q, want two subjects", parts, other, got)
		}
		seen[got] = parts
	}
}

func FuzzJoin(f *testing.F) {
	f.Add("a", "b", "ab", "")
	f.Add("1:a", "b", "1", ":ab")
	f.Add("a", "1:b", "a1:", "b")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		if a == "" || b == "" || c == "" || d == "" || a == c && b == d {
			t.Skip()
		}
		one, err1 := gate.Join(fixed(a), fixed(b))(nil)
		two, err2 := gate.Join(fixed(c), fixed(d))(nil)
		three, err3 := gate.Join(fixed(a), fixed(b), fixed(c))(nil)
		nested, err4 := gate.Join(gate.Join(fixed(a), fixed(b)), fixed(c))(nil)
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			t.Fatal(err)
		}
		if one == two || one == three || two == three || three == nested {
			t.Errorf("got %q, %q, %q and %q, want four subjects", one, two, three, nested)
		}
	})
}

func TestJoinFailsWithItsParts(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	if got, err := gate.Join(fixed("a"), failing(boom))(&request{}); !errors.Is(err, boom) || got != "" {
		t.Errorf("got %q, %v, want no subject and %v", got, err, boom)
	}
	if _, err := gate.Join(fixed("a"), gate.ByHeader("X-Api-Key"))(&request{}); !errors.Is(err, gate.ErrMissing) {
		t.Errorf("a missing part: got %v, want %v", err, gate.ErrMissing)
	}
	for _, key := range []gate.Key{gate.Join(fixed("a"), fixed("")), gate.FirstOf(fixed(""), fixed("a")), gate.Tag("user", fixed(""))} {
		if got, err := key(&request{}); !errors.Is(err, gate.ErrWiring) || errors.Is(err, gate.ErrMissing) {
			t.Errorf("an empty part: got %q, %v, want %v, which is not %v", got, err, gate.ErrWiring, gate.ErrMissing)
		}
	}
}

func TestFirstOf(t *testing.T) {
	t.Parallel()
	key := gate.FirstOf(gate.ByHeader("X-Api-Key"), gate.ByHeader("X-Session"))
	both := with("X-Api-Key", "k")
	both.header["X-Session"] = []string{"s"}
	for _, c := range []struct {
		name string
		r    *request
		want string
	}{
		{"the first", with("X-Api-Key", "k"), "header:x-api-key=k"},
		{"the second", with("X-Session", "s"), "header:x-session=s"},
		{"both", both, "header:x-api-key=k"},
		{"the first is empty", with("X-Session", "s"), "header:x-session=s"},
	} {
		if got, err := key(c.r); err != nil || got != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
		}
	}
	both.header["X-Api-Key"] = []string{"k", "k"}
	if got, err := key(both); err == nil || errors.Is(err, gate.ErrMissing) {
		t.Errorf("a doubled first key: got %q, %v, want a refusal", got, err)
	}
	boom := errors.New("boom")
	if _, err := gate.FirstOf(failing(boom), fixed("a"))(&request{}); !errors.Is(err, boom) {
		t.Errorf("a failing first key: got %v, want %v", err, boom)
	}
	first := errors.Join(gate.ErrMissing, boom)
	if _, err := gate.FirstOf(failing(first), failing(gate.ErrMissing))(&request{}); !errors.Is(err, boom) {
		t.Errorf("all are missing: got %v, want the first's", err)
	}
}

// If a client sends the text of another client's key as an API key, that takes no permits
// of the other client.
func TestKindsDoNotCollide(t *testing.T) {
	t.Parallel()
	victim := &request{peer: netip.MustParseAddrPort("203.0.113.9:1")}
	target, err := gate.ByIP(nil)(victim)
	if err != nil {
		t.Fatal(err)
	}
	own := func(r gate.Request) (string, error) { return strings.Join(r.Header("X-Api-Key"), ""), nil }
	for _, text := range []string{"203.0.113.9", "ip=203.0.113.9", "=203.0.113.9", target} {
		r := with("X-Api-Key", text)
		r.peer = netip.MustParseAddrPort("192.0.2.66:1")
		r.query = "user=" + text
		r.values = map[any]any{"user": text}
		r.route, r.params = "/{user}", map[string]string{"user": text}
		all := map[string]bool{target: true}
		keys := []gate.Key{
			gate.ByHeader("X-Api-Key"), gate.ByQuery("user"), gate.ByValue("user", "user"), gate.ByParam("user"),
			gate.Tag("user", own), gate.Tag("ip", own), gate.Join(own), gate.FirstOf(gate.Tag("api", own), gate.ByIP(nil)),
		}
		for i, key := range keys {
			got, err := key(r)
			if err != nil {
				t.Fatalf("key %d of %q: got the error %v, want none", i, text, err)
			}
			if all[got] {
				t.Errorf("key %d of %q is %q again, want another subject", i, text, got)
			}
			all[got] = true
		}
	}
}

func TestNamesAndValuesDoNotCollide(t *testing.T) {
	t.Parallel()
	one, err1 := gate.ByQuery("a")(&request{query: "a=b%3Dc"})
	two, err2 := gate.ByQuery("a=b")(&request{query: "a%3Db=c"})
	three, err3 := gate.ByQuery("a%3Db")(&request{query: "a%253Db=c"})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if one == two || two == three || one == three {
		t.Errorf("got %q, %q and %q, want three subjects", one, two, three)
	}
}

func TestKeysPanicAtWiring(t *testing.T) {
	t.Parallel()
	type opaque struct{ any }
	for name, wire := range map[string]func(){
		"Join of nothing":           func() { gate.Join() },
		"Join of nil":               func() { gate.Join(fixed("a"), nil) },
		"FirstOf nothing":           func() { gate.FirstOf() },
		"FirstOf nil":               func() { gate.FirstOf(nil) },
		"Tag of nothing":            func() { gate.Tag("", fixed("a")) },
		"Tag of nil":                func() { gate.Tag("user", nil) },
		"Fold of nil":               func() { gate.Fold(nil) },
		"Subject of nil":            func() { _, _ = gate.Subject(nil, gate.Values{}) },
		"ByHeader without a name":   func() { gate.ByHeader("") },
		"ByHeader with a colon":     func() { gate.ByHeader("X-Api-Key:") },
		"ByHeader with a space":     func() { gate.ByHeader("X Api") },
		"ByParam without a name":    func() { gate.ByParam("") },
		"ByQuery without a name":    func() { gate.ByQuery(" ") },
		"ByForm without a name":     func() { gate.ByForm("", nil) },
		"ByForm of negative size":   func() { gate.ByForm("a", &gate.BodyOptions{MaxBody: -1}) },
		"ByJSON without a pointer":  func() { gate.ByJSON("", nil) },
		"ByJSON with a dotted path": func() { gate.ByJSON("user.id", nil) },
		"ByJSON with a broken ~":    func() { gate.ByJSON("/a~2b", nil) },
		"ByJSON with a trailing ~":  func() { gate.ByJSON("/a~", nil) },
		"ByJSON of negative size":   func() { gate.ByJSON("/a", &gate.BodyOptions{MaxBody: -1}) },
		"ByValue of nil":            func() { gate.ByValue("user", nil) },
		"ByValue of a func":         func() { gate.ByValue("user", opaque{func() {}}) },
		"ByValue without a name":    func() { gate.ByValue("", "user") },
		"ByValue of a capital":      func() { gate.ByValue("User", "user") },
		"ByValue of a sign":         func() { gate.ByValue("user=", "user") },
		"ByValue of a colon":        func() { gate.ByValue("key:user", "user") },
		"ByValue of a letter":       func() { gate.ByValue("\u00fc", "user") },
		"ByValue of form":           func() { gate.ByValue("form", "user") },
		"ByValue of header":         func() { gate.ByValue("header", "user") },
		"ByValue of ip":             func() { gate.ByValue("ip", "user") },
		"ByValue of join":           func() { gate.ByValue("join", "user") },
		"ByValue of json":           func() { gate.ByValue("json", "user") },
		"ByValue of key":            func() { gate.ByValue("key", "user") },
		"ByValue of param":          func() { gate.ByValue("param", "user") },
		"ByValue of path":           func() { gate.ByValue("path", "user") },
		"ByValue of query":          func() { gate.ByValue("query", "user") },
		"ByValue of route":          func() { gate.ByValue("route", "user") },
		"ByIP of an invalid prefix": func() { gate.ByIP(&gate.IPOptions{TrustedProxies: make([]netip.Prefix, 1)}) },
		"ByIP of half a mapped one": func() {
			gate.ByIP(&gate.IPOptions{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("::ffff:0.0.0.0/90")}})
		},
		"ByIP of too many bits":         func() { gate.ByIP(&gate.IPOptions{IPv6Prefix: 129}) },
		"ByIP of negative bits":         func() { gate.ByIP(&gate.IPOptions{IPv6Prefix: -1}) },
		"ByIP of too many bits of IPv4": func() { gate.ByIP(&gate.IPOptions{IPv4Prefix: 33}) },
		"ByIP of negative bits of IPv4": func() { gate.ByIP(&gate.IPOptions{IPv4Prefix: -1}) },
		"ByIP of negative hops":         func() { gate.ByIP(&gate.IPOptions{TrustedHops: -1}) },
		"ByIP of hops and of proxies": func() {
			gate.ByIP(&gate.IPOptions{TrustedHops: 1, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
		},
		"ByIP of hops and of a unix socket": func() { gate.ByIP(&gate.IPOptions{TrustedHops: 1, TrustUnixSocket: true}) },
		"ByIP of hops and of a context":     func() { gate.ByIP(&gate.IPOptions{TrustedHops: 1, FromContext: noAddr}) },
		"ByIP of a context and of proxies": func() {
			gate.ByIP(&gate.IPOptions{FromContext: noAddr, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
		},
		"ByIP of a context and of a unix socket": func() {
			gate.ByIP(&gate.IPOptions{FromContext: noAddr, TrustUnixSocket: true})
		},
		"Chain with nil":             func() { gate.Chain(nil) },
		"Chain with nil in between":  func() { gate.Chain(gate.Chain(), nil) },
		"Chain with a typed nil one": func() { gate.Chain((*fake)(nil)) },
		"Chain with a nil function":  func() { gate.Chain(gateFunc(nil)) },
		"ByIP of all that NAT64 translates": func() {
			gate.ByIP(&gate.IPOptions{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96")}})
		},
		"ByIP of all mapped ones": func() {
			gate.ByIP(&gate.IPOptions{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("::ffff:0.0.0.0/96")}})
		},
	} {
		func() {
			defer func() {
				v := recover()
				s, ok := v.(string)
				if !ok || !strings.HasPrefix(s, "gate."+strings.Fields(name)[0]+": ") {
					t.Errorf("%s: recovered %v, want a panic that begins with the function's name", name, v)
				}
			}()
			wire()
		}()
	}
}

type gateFunc func(gate.Request) gate.Pass

func (f gateFunc) Enter(r gate.Request) gate.Pass { return f(r) }

// If one of several arguments is wrong, the panic says which.
func TestPanicsNameTheWrongArgument(t *testing.T) {
	t.Parallel()
	for want, wire := range map[string]func(){
		"gate.Chain: gates[1] is nil":  func() { gate.Chain(gate.Chain(), nil) },
		"gate.Join: keys[2] is nil":    func() { gate.Join(fixed("a"), fixed("b"), nil) },
		"gate.FirstOf: keys[0] is nil": func() { gate.FirstOf(nil, fixed("b")) },
		"TrustedProxies[1] is 64:ff9b::/96, which is every IPv4 address": func() {
			gate.ByIP(&gate.IPOptions{TrustedProxies: []netip.Prefix{
				netip.MustParsePrefix("64:ff9b::7f00:1/128"), netip.MustParsePrefix("64:ff9b::/96"),
			}})
		},
	} {
		if got, ok := panics(t, wire).(string); !ok || !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A key keeps a copy of the caller's slice.
func TestKeysAreCopied(t *testing.T) {
	t.Parallel()
	for name, combine := range map[string]func(...gate.Key) gate.Key{"Join": gate.Join, "FirstOf": gate.FirstOf} {
		keys := []gate.Key{fixed("a")}
		key := combine(keys...)
		before, err := key(&request{})
		keys[0] = fixed("b")
		if after, _ := key(&request{}); err != nil || after != before {
			t.Errorf("%s: %q became %q, %v, want no change", name, before, after, err)
		}
	}
}

// For any two different values, no key of a request with one value equals a key of a
// request with the other, nor another key of the same request.
func FuzzSubjects(f *testing.F) {
	f.Add("203.0.113.9", "ip=203.0.113.9")
	f.Add("a", "a=b")
	f.Add("a:b{}", "a%3Ab")
	f.Add("\x00", "\xff\xfe")
	f.Add(" a", "a")
	f.Add(strings.Repeat("x", 10<<10), strings.Repeat("x", 10<<10+1))
	keys := map[string]gate.Key{
		"header": gate.ByHeader("X-Api-Key"), "host": gate.ByHeader("Host"), "query": gate.ByQuery("user"),
		"form": gate.ByForm("user", nil), "json": gate.ByJSON("/user", nil), "param": gate.ByParam("user"),
		"path": gate.ByPath(), "value": gate.ByValue("user", "user"), "other value": gate.ByValue("other", userKey(0)),
		"tag": gate.Tag("user", func(r gate.Request) (string, error) { return r.Host(), nil }),
		"ip":  gate.ByIP(nil), "route": gate.ByRoute(),
		"join": gate.Join(gate.ByHeader("Host"), gate.ByValue("user", "user")), "first": gate.Tag("first", gate.FirstOf(gate.ByPath())),
	}
	ask := func(t *testing.T, value string) map[string]string {
		quoted, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for name, key := range keys {
			r := with("X-Api-Key", value)
			r.host, r.route, r.params = value, "/{user}", map[string]string{"user": value}
			r.path, r.query = "/"+url.PathEscape(value), "user="+url.QueryEscape(value)
			r.values = map[any]any{"user": value, userKey(0): value}
			r.peer = netip.MustParseAddrPort("203.0.113.9:1")
			switch name {
			case "form":
				r.query, r.body = "", r.query
				r.header["Content-Type"] = []string{"application/x-www-form-urlencoded"}
			case "json":
				r.body = `{"user":` + string(quoted) + `}`
				r.header["Content-Type"] = []string{"application/json"}
			}
			if s, err := key(r); err == nil {
				got[name] = s
			}
		}
		return got
	}
	shared := map[string]bool{"ip": true, "route": true} // the same of both requests
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.Trim(a, " \t") == strings.Trim(b, " \t") || !utf8.ValidString(a) || !utf8.ValidString(b) {
			t.Skip() // json.Marshal makes U+FFFD of what is not UTF-8
		}
		ofA, ofB := ask(t, a), ask(t, b)
		for one, s := range ofA {
			for other, o := range ofA {
				if one != other && s == o {
					t.Errorf("%s and %s are both %q, want two subjects", one, other, s)
				}
			}
			for other, o := range ofB {
				if s == o && !shared[one] {
					t.Errorf("%s of %q and %s of %q are both %q, want two subjects", one, a, other, b, s)
				}
			}
		}
	})
}

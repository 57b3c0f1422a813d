package gatetest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
)

// trailing sends a request in chunks, followed by a trailer.
func (c *client) trailing(target, body string, trailer []string, lines ...string) answer {
	c.t.Helper()
	chunks := strings.TrimSuffix(chunked(body), "\r\n") + strings.Join(append(trailer, ""), "\r\n") + "\r\n"
	a, err := c.try("POST", target, chunks, append([]string{"Transfer-Encoding: chunked"}, lines...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// readers say what reads a body before a gate looks at the header: the trailer has
// arrived only after that.
var readers = map[string]struct{ outer, gate bool }{
	"Unread":           {},
	"ReadByTheGate":    {gate: true},
	"ReadByMiddleware": {outer: true},
}

func reading(t testing.TB, wanted bool) Middleware {
	return func(x Exchange, next func() error) error {
		if wanted {
			if _, err := x.Body(); err != nil {
				t.Error(err)
			}
		}
		return next()
	}
}

// permitted is trailer without the fields that the server refuses in a trailer.
func (d Driver) permitted(trailer []string) []string {
	return slices.DeleteFunc(slices.Clone(trailer), func(line string) bool {
		name, _, _ := strings.Cut(line, ":")
		return d.refusesTrailer(name)
	})
}

func (d Driver) refusesTrailer(name string) bool {
	return slices.ContainsFunc(d.RefusedTrailers, func(refused string) bool { return strings.EqualFold(refused, name) })
}

// headerFields are the fields with which the cases about trailers work.
var headerFields = []string{
	"X-Signature", "X-Forwarded-For", "Content-Type", "User-Agent", "Cookie", "Idempotency-Key", "X-Only", "X-Undeclared",
}

// mixes reports whether the framework puts a trailer into the header. In that case a key
// may refuse a field if a trailer may have added a line to it. Middleware may have added
// that line, too.
func mixes(q gate.Request) bool {
	_, ok := gate.Unwrap(q).(interface{ Unsure(name string) bool })
	return ok
}

// trailersUnseen: of a field, a gate is told only the lines in the header. That holds for
// each trailer, each reader of the body and each key.
func trailersUnseen(t *testing.T, d Driver) {
	for name, reader := range readers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := func(q gate.Request) string {
				if reader.gate {
					if _, err := q.Body(1 << 10); err != nil {
						t.Error(err)
					}
				}
				every := map[string][]string{}
				for name, line := range q.Headers() {
					every[name] = append(every[name], line)
				}
				var out strings.Builder
				for _, name := range headerFields {
					fmt.Fprintf(&out, "%s %q %q\n", name, q.Header(name), every[name])
				}
				signature, err := gate.ByHeader("X-Signature")(q)
				native, errNative := d.Key("X-Signature")(q)
				switch {
				case err != nil && errNative != nil && mixes(q):
					fmt.Fprintln(&out, "refused", signature, native)
				default:
					fmt.Fprintln(&out, signature, err, native, errNative)
				}
				_, err = gate.Join(gate.ByIP(nil), gate.ByHeader("X-Only"))(q)
				_, errNative = d.Key("X-Only")(q)
				fmt.Fprintln(&out, err != nil, errNative)
				return out.String()
			}
			address := d.Serve(t, App{Routes: []Route{{
				Method: "POST", Pattern: "/detail", Handler: never(t),
				Around: []Middleware{reading(t, reader.outer)},
				Gates: []gate.Gate{enter(func(q gate.Request) gate.Pass {
					return gate.Pass{Reply: &gate.Reply{Status: 200, Body: []byte(report(q))}}
				})},
			}}})
			const want = `X-Signature ["good"] ["good"]
X-Forwarded-For ["1.1.1.1" "2.2.2.2"] ["1.1.1.1" "2.2.2.2"]
Content-Type ["text/plain"] ["text/plain"]
User-Agent ["agent"] ["agent"]
Cookie ["a=1; b=2"] ["a=1; b=2"]
Idempotency-Key [] []
X-Only [] []
X-Undeclared [] []
header:x-signature=good <nil> good <nil>
true gate: refused: no such header
`
			for _, trailer := range [][]string{nil, {
				"X-Signature: junk", "x-forwarded-for: 66.66.66.66", "Content-Type: application/json", "User-Agent: evil",
				"Cookie: a=9", "Idempotency-Key: evil", "X-Only: evil", "X-UNDECLARED: evil", "X-Only: evil",
			}, {"X-Signature: junk", "X-Signature: good"}, {"X-Forwarded-For: 1.1.1.1", "x-forwarded-for: 2.2.2.2"}} {
				declared := d.permitted([]string{"X-Signature", "X-Forwarded-For", "X-Only"})
				a := dial(t, address).trailing("/detail", "body", d.permitted(trailer),
					"Trailer: "+strings.Join(declared, ", "), "X-Signature: good", "X-Forwarded-For: 1.1.1.1",
					"Content-Type: text/plain", "User-Agent: agent", "Cookie: a=1; b=2", "X-Forwarded-For: 2.2.2.2")
				got := a.body
				if slices.ContainsFunc(trailer, func(line string) bool { return strings.HasPrefix(line, "X-Signature:") }) {
					got = strings.Replace(got, "\nrefused  \n", "\nheader:x-signature=good <nil> good <nil>\n", 1)
				}
				if a.status != 200 || got != want {
					t.Errorf("with the trailer %q got %d\n%s\nwant\n%s", trailer, a.status, a.body, want)
				}
			}
		})
	}
}

// trailersSpoof: behind a proxy that appends the client's address, a trailer does
// not choose another address.
func trailersSpoof(t *testing.T, d Driver) {
	trusting(t, d, "listed", &gate.IPOptions{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}})
	trusting(t, d, "counted", &gate.IPOptions{TrustedHops: 1})
}

func trusting(t *testing.T, d Driver, how string, loopback *gate.IPOptions) {
	for name, reader := range readers {
		t.Run(how+"/"+name, func(t *testing.T) {
			t.Parallel()
			const refused = "refused"
			keys := make(chan string, 16)
			address := d.Serve(t, App{Routes: []Route{{
				Method: "POST", Pattern: "/p", Handler: say(200, "ok"),
				Around: []Middleware{reading(t, reader.outer)},
				Gates: []gate.Gate{enter(func(q gate.Request) gate.Pass {
					if reader.gate {
						_, _ = q.Body(1 << 10)
					}
					key, err := gate.ByIP(loopback)(q)
					if err != nil && mixes(q) {
						key = refused
					}
					keys <- key
					return gate.Pass{}
				}), gate.RateLimit(perHour(t, "spoof", 3), gate.ByIP(loopback), nil)},
			}}})
			admitted, most, refuses := 0, 3, d.refusesTrailer("X-Forwarded-For")
			if refuses {
				most = 0
			}
			for i := range 12 {
				a := dial(t, address).trailing("/p", "a=1", []string{fmt.Sprintf("X-Forwarded-For: 66.66.1.%d", i)},
					"Trailer: X-Forwarded-For", "X-Forwarded-For: 9.9.9.9")
				if refuses {
					if a.status != 400 || len(keys) > 0 {
						t.Errorf("request %d got %d, and %d keys were made, want 400 and none", i, a.status, len(keys))
					}
				} else if key := next(t, "the gate to report its key", keys); key == refused {
					most = 0
				} else if key != "ip=9.9.9.9" {
					t.Errorf("request %d was keyed by %q, want the address that the proxy appended", i, key)
				}
				if a.status == 200 {
					admitted++
				}
			}
			if admitted != most {
				t.Errorf("%d of 12 requests were admitted, want %d", admitted, most)
			}
		})
	}
}

// trailersOuter: a field that middleware outside the gate has stripped from the header
// stays stripped. A field that it has set stays set, or the request has no usable key.
func trailersOuter(t *testing.T, d Driver) {
	for name, readByGate := range map[string]bool{"Unread": false, "ReadByTheGate": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := d.Serve(t, App{Routes: []Route{{
				Method: "POST", Pattern: "/detail", Handler: never(t),
				Around: []Middleware{func(x Exchange, next func() error) error {
					x.DelRequestHeader("X-Stripped")
					x.SetRequestHeader("X-Set", "middleware")
					x.SetRequestHeader("X-New", "middleware")
					return next()
				}},
				Gates: []gate.Gate{enter(func(q gate.Request) gate.Pass {
					if readByGate {
						_, _ = q.Body(1 << 10)
					}
					var out []string
					for _, name := range []string{"X-Stripped", "X-Set", "X-New"} {
						key, err := gate.ByHeader(name)(q)
						native, _ := d.Key(name)(q)
						if err != nil {
							key = "refused"
						}
						out = append(out, strings.TrimPrefix(key, "header:"), native)
					}
					for name, line := range q.Headers() {
						if strings.HasPrefix(name, "X-") {
							out = append(out, line)
						}
					}
					return gate.Pass{Reply: &gate.Reply{Status: 200, Body: []byte(strings.Join(out, " "))}}
				})},
			}}})
			for _, value := range []string{"client", "middleware"} {
				a := dial(t, address).trailing("/detail", "body",
					[]string{"X-Stripped: client", "X-Set: " + value, "X-New: client"},
					"Trailer: X-Stripped, X-Set, X-New", "X-Stripped: client", "X-Set: client")
				if a.status != 200 || strings.Contains(a.body, "client") || !strings.HasPrefix(a.body, "refused") {
					t.Errorf("got %d, and the gate was told %q, "+
						"want 200, X-Stripped refused, and nothing by the client", a.status, a.body)
				}
			}
			a := dial(t, address).post("/detail", "body", "X-Stripped: client", "X-Set: client")
			const want = "refused  x-set=middleware middleware x-new=middleware middleware middleware middleware" //nolint:dupword // lines of one field
			if a.body != want {
				t.Errorf("for a body with its length the gate was told %q, want %q", a.body, want)
			}
		})
	}
}

// trailersIdempotent: a trailer does not turn a request into another one, and brings no
// key.
func trailersIdempotent(t *testing.T, d Driver) {
	guard := newGuard(t, d, idempotency.Options{})
	var mixed atomic.Bool
	address := d.Serve(t, App{Routes: []Route{{
		Method: "POST", Pattern: "/pay", Handler: say(201, "paid"),
		Gates: []gate.Gate{enter(func(q gate.Request) gate.Pass {
			mixed.Store(mixes(q))
			return gate.Pass{}
		}), gate.Idempotent(guard, gate.Everyone, nil)},
	}}})
	const key = `Idempotency-Key: "one"`
	trailer := []string{"Content-Type: text/plain", "X-Other: 1", `Idempotency-Key: "two"`}
	for i, sent := range [][]string{nil, trailer, trailer[:1], trailer[2:]} {
		a := dial(t, address).trailing("/pay", "amount=1", d.permitted(sent), key, "Content-Type: application/x-www-form-urlencoded")
		if mixed.Load() && a.status == 400 && slices.Contains(sent, trailer[2]) {
			continue // the key is in the trailer too
		}
		if replayed := a.header.Get("Idempotent-Replayed") == "true"; a.status != 201 || replayed != (i > 0) {
			t.Errorf("with the trailer %q: got %d, replayed %t, want 201, replayed %t",
				sent, a.status, replayed, i > 0)
		}
	}
	if a := dial(t, address).trailing("/pay", "amount=1", d.permitted(trailer)); a.status != 400 {
		t.Errorf("with a key only in the trailer: got %d, want 400", a.status)
	}
}

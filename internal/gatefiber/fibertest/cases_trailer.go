package fibertest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatetest"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/gatefake"
)

// trailerNotTold: a gate sees the header of a chunked request, however it was sent, and
// nothing of the trailer.
func trailerNotTold(t *testing.T, d Driver) {
	for name, c := range map[string]struct {
		raw, want string
		fields    []string
	}{
		"EmptyBody": {
			chunkedHead + "X-A: 1\r\n\r\n0\r\nX-A: 2\r\nX-B: 3\r\n\r\n",
			`["1"] header:x-a=1 [] refused`, []string{"X-A", "X-B"},
		},
		"UnknownCoding": {
			strings.Replace(chunkedHead, "chunked", "gzip, Chunked", 1) + "X-A: 1\r\n\r\n1\r\na\r\n0\r\nX-A: 2\r\nX-B: 3\r\n\r\n",
			`["1"] header:x-a=1 [] refused`, []string{"X-A", "X-B"},
		},
		"OfAGet": {
			strings.Replace(chunkedHead, "POST", "GET", 1) + "X-A: 1\r\n\r\n1\r\na\r\n0\r\nX-A: 2\r\nX-B: 3\r\n\r\n",
			`["1"] header:x-a=1 [] refused`, []string{"X-A", "X-B"},
		},
		"Host": {chunkedHead + "\r\n1\r\na\r\n0\r\nHost: evil\r\n\r\n", `[] header:host=example.com`, []string{"Host"}},
		"Cookies": {
			chunkedHead + "Cookie: a=1\r\nCookie: b=2\r\n\r\n1\r\na\r\n0\r\nCookie: a=3\r\n\r\n",
			`["a=1" "b=2"] refused`, []string{"Cookie"},
		},
		"CookieInTheTrailerAlone": {
			chunkedHead + "\r\n1\r\na\r\n0\r\nCookie: a=3\r\n\r\n", `[] refused`, []string{"Cookie"},
		},
		"ContentTypeAlone": {
			chunkedHead + "\r\n1\r\na\r\n0\r\nContent-Type: text/html\r\nUser-Agent: a\r\n\r\n",
			`[] refused [] refused`, []string{"Content-Type", "User-Agent"},
		},
		"DoubledAgent": {
			chunkedHead + "User-Agent: a\r\nUser-Agent: b\r\n\r\n1\r\na\r\n0\r\nUser-Agent: c\r\n\r\n",
			`["a" "b"] refused`, []string{"User-Agent"},
		},
	} {
		for _, config := range []Config{{}, {StreamRequestBody: true}, {DisableHeaderNormalizing: true}, {ReduceMemoryUsage: true}} {
			t.Run(fmt.Sprintf("%s/Stream=%t,AsSpelled=%t,Reduced=%t", name, config.StreamRequestBody, config.DisableHeaderNormalizing, config.ReduceMemoryUsage), func(t *testing.T) {
				t.Parallel()
				address := d.Serve(t, config, gated(told(names(c.fields...)), d.before(func(rc *fasthttp.RequestCtx) {
					_ = rc.Request.Header.Cookie("a") // has fasthttp parse those that are there
				})))
				// If the request arrives in pieces, fasthttp reads the first lines of a trailer several times.
				got := answered(t, address, c.raw)
				if strings.HasPrefix(got, "400 ") && refusedByFasthttp(c.raw) {
					return
				}
				// A key need not believe a field that the trailer has, too.
				if got = strings.Replace(got, `["1"] refused`, `["1"] header:x-a=1`, 1); got != "200 "+c.want {
					t.Errorf("got  %s\nwant 200 %s", got, c.want)
				}
			})
		}
	}
}

// refusedByFasthttp reports whether this version of fasthttp refuses such a request
// itself, before any gate.
func refusedByFasthttp(raw string) bool {
	return new(fasthttp.Request).Read(bufio.NewReader(strings.NewReader(raw))) != nil
}

// trailerHeaderMadeAnew: middleware that builds the header anew may copy the fields of a
// trailer into it. A gate believes the header if it can tell that there was no trailer.
func trailerHeaderMadeAnew(t *testing.T, d Driver) {
	anew := d.before(func(rc *fasthttp.RequestCtx) {
		var clean fasthttp.RequestHeader
		old := &rc.Request.Header
		clean.SetMethodBytes(old.Method())
		clean.SetRequestURIBytes(old.RequestURI())
		clean.SetHostBytes(old.Host())
		clean.SetContentLength(old.ContentLength())
		if a := old.Peek("X-A"); a != nil {
			clean.SetBytesV("X-A", a)
		}
		clean.CopyTo(old)
	})
	const seen, unseen = `200 ["1"] header:x-a=1`, `200 [] refused`
	const plainHead = "POST /detail HTTP/1.1\r\nHost: example.com\r\nX-A: 1\r\n"
	mounted := map[string][]gatetest.Middleware{"Alone": {anew}, "Dropped": {d.DropTrailers, anew}, "DroppedLate": {anew, d.DropTrailers}}
	for name, c := range map[string]struct{ raw, want, dropped string }{
		"Trailer":         {chunkedHead + "\r\n4\r\nbody\r\n0\r\nX-A: 1\r\n\r\n", unseen, unseen},
		"TrailerAlone":    {chunkedHead + "\r\n0\r\nX-A: 1\r\n\r\n", unseen, unseen},
		"TrailerOfAGet":   {strings.Replace(chunkedHead, "POST", "GET", 1) + "\r\n0\r\nX-A: 1\r\n\r\n", unseen, unseen},
		"Chunks":          {chunkedHead + "X-A: 1\r\n\r\n4\r\nbody\r\n0\r\n\r\n", unseen, seen},
		"Length":          {plainHead + "Content-Length: 4\r\n\r\nbody", seen, seen},
		"LengthOfNothing": {plainHead + "Content-Length: 0\r\n\r\n", unseen, seen},
		"GetWithoutABody": {strings.Replace(plainHead, "POST", "GET", 1) + "\r\n", seen, seen},
	} {
		for _, stream := range []bool{false, true} {
			for how, around := range mounted {
				t.Run(fmt.Sprintf("%s/Stream=%t,%s", name, stream, how), func(t *testing.T) {
					t.Parallel()
					want := c.want
					if how == "Dropped" {
						want = c.dropped
					}
					address := d.Serve(t, Config{StreamRequestBody: stream}, gated(told(names("X-A")), around...))
					if got := answered(t, address, c.raw); got != want {
						t.Errorf("got %q, want %q", got, want)
					}
				})
			}
		}
	}
}

// trailerAddress: if fasthttp takes X-Forwarded-For from a trailer, an address that
// middleware has written into it cannot be told from one of the trailer. ByIP refuses it,
// and does not key it by the proxy.
func trailerAddress(t *testing.T, d Driver) {
	limiter, err := limit.NewLocal("trailers", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	proxied := gate.ByIP(&gate.IPOptions{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	address := d.Serve(t, Config{}, gated(gatefake.Func(func(q gate.Request) gate.Pass {
		if key, err := proxied(q); err == nil {
			return respond(200, key)
		}
		return gate.RateLimit(limiter, proxied, nil).Enter(q)
	}), d.before(func(rc *fasthttp.RequestCtx) {
		h := &rc.Request.Header
		if to := string(h.Peek("X-Rewrite")); to != "" {
			h.Set("X-Forwarded-For", to)
		}
		if line := string(h.Peek("X-Add")); line != "" {
			h.Add("X-Forwarded-For", line)
		}
	})))
	written := "400"
	if errors.Is(new(fasthttp.RequestHeader).AddTrailer("X-Forwarded-For"), fasthttp.ErrBadTrailer) {
		written = "200 ip=9.9.9.9" // it can be of middleware alone
	}
	for name, c := range map[string]struct{ raw, want string }{
		"SetByMiddleware": {"X-Rewrite: 9.9.9.9\r\n\r\n1\r\na\r\n0\r\n\r\n", written},
		"OfATrailer":      {"\r\n1\r\na\r\n0\r\nX-Forwarded-For: 9.9.9.9\r\n\r\n", "400"},
		"AddedByIt":       {"X-Add: 9.9.9.9\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n1\r\na\r\n0\r\n\r\n", written},
		"OfBoth":          {"X-Forwarded-For: 8.8.8.8\r\n\r\n1\r\na\r\n0\r\nX-Forwarded-For: 9.9.9.9\r\n\r\n", "400"},
		"OfTheProxy":      {"X-Forwarded-For: 8.8.8.8\r\n\r\n1\r\na\r\n0\r\nX-Other: 9.9.9.9\r\n\r\n", "200 ip=8.8.8.8"},
		"None":            {"\r\n1\r\na\r\n0\r\n\r\n", "200 ip=127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := answered(t, address, chunkedHead+c.raw); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// trailerNoMissingKey: a gate does not see a field that a trailer may have brought.
// FirstOf does not take it for missing, and does not go on to the next key.
func trailerNoMissingKey(t *testing.T, d Driver) {
	address := d.Serve(t, Config{}, gated(told(func(q gate.Request) string {
		key, err := gate.FirstOf(gate.ByHeader("X-Key"), gate.ByIP(nil))(q)
		return fmt.Sprintf("%d %q %t", len(q.Header("X-Key")), key, err != nil)
	})))
	for trailer, want := range map[string]string{"X-Key: 1\r\n": `0 "" true`, "X-Other: 1\r\n": `0 "ip=127.0.0.1" false`} {
		if got := answered(t, address, chunkedHead+"\r\n1\r\na\r\n0\r\n"+trailer+"\r\n"); got != "200 "+want {
			t.Errorf("%q: got %q, want %q", trailer, got, want)
		}
	}
}

// dropTrailers: behind DropTrailers, a gate and a handler see what middleware has set in
// the header, and neither sees a trailer.
func dropTrailers(t *testing.T, d Driver) {
	fields := []string{"X-Stripped", "X-Set", "X-Added", "X-Kept", "X-Only"}
	for _, stream := range []bool{false, true} {
		for _, readOutside := range []bool{false, true} {
			t.Run(fmt.Sprintf("Stream=%t,ReadOutside=%t", stream, readOutside), func(t *testing.T) {
				t.Parallel()
				change := d.before(func(rc *fasthttp.RequestCtx) {
					h := &rc.Request.Header
					h.Del("X-Stripped")
					h.Set("X-Set", "middleware")
					h.Add("X-Added", "middleware")
					if readOutside {
						if body := rc.Request.Body(); string(body) != "body" {
							t.Errorf("middleware read %q, want \"body\"", body)
						}
					}
				})
				var told string
				address := d.Serve(t, Config{StreamRequestBody: stream}, gatetest.App{
					Around: []gatetest.Middleware{d.DropTrailers, change},
					Routes: []gatetest.Route{{
						Method: "POST", Pattern: "/detail",
						Gates: []gate.Gate{gatefake.Func(func(q gate.Request) gate.Pass {
							told = names(fields...)(q)
							return gate.Pass{}
						})},
						Handler: func(x gatetest.Exchange) error {
							r, seen := &d.RequestCtx(x).Request, ""
							for _, name := range fields {
								lines := r.Header.PeekAll(name)
								slices.SortFunc(lines, bytes.Compare) // middleware's own Del may change the order
								seen += fmt.Sprintf("%s ", lines)
							}
							return x.Send(200, seen+string(r.Body()))
						},
					}},
				})
				got := answered(t, address, chunkedHead+
					"X-Set: client\r\nX-Added: first\r\nX-Kept: a\r\nX-Kept: b\r\nX-Stripped: client\r\n\r\n4\r\nbody\r\n0\r\n"+
					"X-Stripped: evil\r\nX-Set: evil\r\nX-Added: evil\r\nX-Kept: evil\r\nX-Only: evil\r\n\r\n")
				if want := "200 [] [middleware] [first middleware] [a b] [] body"; got != want {
					t.Errorf("the handler saw %q, want %q", got, want)
				}
				const want = `[] refused ["middleware"] header:x-set=middleware ["first" "middleware"] refused ["a" "b"] refused [] refused`
				if told != want {
					t.Errorf("the gate was told\n\t%s\nwant\n\t%s", told, want)
				}
			})
		}
	}
}

// dropTrailersRead: a body that DropTrailers has wrapped, and others have read, counts as
// consumed like any other.
func dropTrailersRead(t *testing.T, d Driver) {
	address := d.Serve(t, streaming, gated(bodies(1<<20), d.DropTrailers, d.before(func(rc *fasthttp.RequestCtx) {
		_, _ = io.ReadAll(rc.RequestBodyStream())
	})))
	for _, body := range []string{"4\r\nbody\r\n0\r\n\r\n", "0\r\n\r\n"} {
		if got, want := answered(t, address, chunkedHead+"\r\n"+body), "200 0 "+gate.ErrBodyConsumed.Error(); got != want {
			t.Errorf("%q: got %q, want %q", body, got, want)
		}
	}
}

// dropTrailersLength: a body of a declared length has no trailer, whatever Transfer-Encoding
// says, and stays the server's own stream. fasthttp would give the memory that this stream
// reads to another request.
func dropTrailersLength(t *testing.T, d Driver) {
	var before, after io.Reader
	address := d.Serve(t, Config{StreamRequestBody: true}, gated(told(func(gate.Request) string {
		return fmt.Sprintf("streamed %t, kept %t", before != nil, before == after)
	}), d.before(func(rc *fasthttp.RequestCtx) { before = rc.Request.BodyStream() }), d.DropTrailers,
		d.before(func(rc *fasthttp.RequestCtx) { after = rc.Request.BodyStream() })))
	raw := strings.Replace(posting(4, "body"), "Content-Length", "Transfer-Encoding: identity\r\nContent-Length", 1)
	got := answered(t, address, raw)
	refused := strings.HasPrefix(got, "400 ") && refusedByFasthttp(raw)
	if !refused && got != "200 streamed true, kept true" {
		t.Errorf("got %q, want the stream as it was", got)
	}
}

// dropTrailersOrder: the lines of a field keep their order when those of another are
// removed, for a handler behind DropTrailers and for a key of Fiber's own.
func dropTrailersOrder(t *testing.T, d Driver) {
	ordered := func(rc *fasthttp.RequestCtx) string { return fmt.Sprintf("%s", rc.Request.Header.PeekAll("X-Order")) }
	key := d.Key(func(rc *fasthttp.RequestCtx) (string, error) { return ordered(rc), nil })
	for name, around := range map[string][]gatetest.Middleware{"Key": nil, "DropTrailers": {d.DropTrailers}} {
		seen := ""
		note := d.before(func(rc *fasthttp.RequestCtx) { seen = ordered(rc) })
		address := d.Serve(t, Config{}, gated(told(func(q gate.Request) string {
			k, err := key(q)
			return fmt.Sprintln(q.Header("X-Order"), seen, k, err)
		}), append(around, note)...))
		got := answered(t, address, chunkedHead+
			"X-Set: 1\r\nX-Order: 1\r\nX-Order: 2\r\nX-Order: 3\r\n\r\n4\r\nbody\r\n0\r\nX-Set: evil\r\n\r\n")
		if want := "200 [1 2 3] [1 2 3] [1 2 3] <nil>\n"; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

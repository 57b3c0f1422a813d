package fiberlimit_test

import (
	"fmt"
	"io"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/fiberlimit"
	"github.com/neap-go/neap/internal/gatefake"
)

const chunkedHead = "POST /detail HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n"

// names tells what a gate is told of fields, and of their keys.
func names(fields ...string) func(gate.Request) string {
	return func(q gate.Request) string {
		_, _ = q.Body(1 << 10)
		var out []string
		for _, name := range fields {
			key, err := gate.ByHeader(name)(q)
			if err != nil {
				key = "refused"
			}
			out = append(out, fmt.Sprintf("%q %s", q.Header(name), key))
		}
		return strings.Join(out, " ")
	}
}

// What stands in the header of a chunked request is told of, however it was sent,
// and nothing of the trailer.
func TestTrailersAreNotTold(t *testing.T) {
	t.Parallel()
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
		for _, config := range []fiber.Config{{}, {StreamRequestBody: true}, {DisableHeaderNormalizing: true}, {ReduceMemoryUsage: true}} {
			t.Run(fmt.Sprintf("%s/Stream=%t,AsSpelled=%t,Reduced=%t", name, config.StreamRequestBody, config.DisableHeaderNormalizing, config.ReduceMemoryUsage), func(t *testing.T) {
				t.Parallel()
				config.DisableStartupMessage = true
				app := fiber.New(config)
				app.Use(func(c *fiber.Ctx) error {
					_ = c.Cookies("a") // has fasthttp parse those that are there
					return c.Next()
				})
				app.All("/detail", told(names(c.fields...)))
				// In pieces, fasthttp takes the first lines of a trailer several times.
				got := answered(t, listening(t, app), c.raw)
				// A key need not believe a field that the trailer has too.
				if got = strings.Replace(got, `["1"] refused`, `["1"] header:x-a=1`, 1); got != "200 "+c.want {
					t.Errorf("got  %s\nwant 200 %s", got, c.want)
				}
			})
		}
	}
}

// Behind DropTrailers, a gate and a handler see what middleware makes of the
// header, and neither sees a trailer.
func TestDropTrailers(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		for _, readOutside := range []bool{false, true} {
			t.Run(fmt.Sprintf("Stream=%t,ReadOutside=%t", stream, readOutside), func(t *testing.T) {
				t.Parallel()
				app := fiber.New(fiber.Config{StreamRequestBody: stream, DisableStartupMessage: true})
				app.Use(fiberlimit.DropTrailers, func(c *fiber.Ctx) error {
					h := &c.Request().Header
					h.Del("X-Stripped")
					h.Set("X-Set", "middleware")
					h.Add("X-Added", "middleware")
					if readOutside {
						if body := c.Body(); string(body) != "body" {
							t.Errorf("middleware read %q, want \"body\"", body)
						}
					}
					return c.Next()
				})
				fields := []string{"X-Stripped", "X-Set", "X-Added", "X-Kept", "X-Only"}
				var gated string
				app.Post("/detail", func(c *fiber.Ctx) error {
					q := gate.Request(nil)
					err := fiberlimit.Middleware(gatefake.Func(func(r gate.Request) gate.Pass {
						q = r
						gated = names(fields...)(q)
						return gate.Pass{}
					}))(c)
					return err
				}, func(c *fiber.Ctx) error {
					var seen []string
					for _, name := range fields {
						seen = append(seen, fmt.Sprintf("%s", c.Request().Header.PeekAll(name)))
					}
					return c.SendString(strings.Join(seen, " ") + " " + string(c.Body()))
				})
				got := answered(t, listening(t, app), chunkedHead+
					"X-Stripped: client\r\nX-Set: client\r\nX-Added: first\r\nX-Kept: a\r\nX-Kept: b\r\n\r\n4\r\nbody\r\n0\r\n"+
					"X-Stripped: evil\r\nX-Set: evil\r\nX-Added: evil\r\nX-Kept: evil\r\nX-Only: evil\r\n\r\n")
				if want := "200 [] [middleware] [first middleware] [a b] [] body"; got != want {
					t.Errorf("the handler saw %q, want %q", got, want)
				}
				const want = `[] refused ["middleware"] header:x-set=middleware ["first" "middleware"] refused ["a" "b"] refused [] refused`
				if gated != want {
					t.Errorf("the gate was told\n\t%s\nwant\n\t%s", gated, want)
				}
			})
		}
	}
}

// A body that DropTrailers has made its own, and others have read, is consumed
// for a gate as any other.
func TestDropTrailersOfAStreamThatOthersHaveRead(t *testing.T) {
	t.Parallel()
	app := fiber.New(fiber.Config{StreamRequestBody: true, DisableStartupMessage: true})
	app.Use(fiberlimit.DropTrailers, func(c *fiber.Ctx) error {
		_, _ = io.ReadAll(c.Context().RequestBodyStream())
		return c.Next()
	})
	app.Post("/detail", fiberlimit.Middleware(bodies(1<<20)))
	for _, body := range []string{"4\r\nbody\r\n0\r\n\r\n", "0\r\n\r\n"} {
		if got, want := answered(t, listening(t, app), chunkedHead+"\r\n"+body), "200 0 "+gate.ErrBodyConsumed.Error(); got != want {
			t.Errorf("%q: got %q, want %q", body, got, want)
		}
	}
}

// Middleware that makes the header anew may copy the fields of a trailer into it.
// A gate believes it where it can tell that there was none.
func TestTrailersOfAHeaderMadeAnew(t *testing.T) {
	t.Parallel()
	anew := func(c *fiber.Ctx) error {
		var clean fasthttp.RequestHeader
		old := &c.Request().Header
		clean.SetMethodBytes(old.Method())
		clean.SetRequestURIBytes(old.RequestURI())
		clean.SetHostBytes(old.Host())
		clean.SetContentLength(old.ContentLength())
		if a := old.Peek("X-A"); a != nil {
			clean.SetBytesV("X-A", a)
		}
		clean.CopyTo(old)
		return c.Next()
	}
	const seen, unseen = `200 ["1"] header:x-a=1`, `200 [] refused`
	const plainHead = "POST /detail HTTP/1.1\r\nHost: example.com\r\nX-A: 1\r\n"
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
			for drop, want := range map[bool]string{false: c.want, true: c.dropped} {
				t.Run(fmt.Sprintf("%s/Stream=%t,Drop=%t", name, stream, drop), func(t *testing.T) {
					t.Parallel()
					app := fiber.New(fiber.Config{StreamRequestBody: stream, DisableStartupMessage: true})
					if drop {
						app.Use(fiberlimit.DropTrailers)
					}
					app.Use(anew)
					app.All("/detail", told(names("X-A")))
					if got := answered(t, listening(t, app), c.raw); got != want {
						t.Errorf("got %q, want %q", got, want)
					}
				})
			}
		}
	}
	// DropTrailers comes too late for a header that was made anew before it.
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Use(anew, fiberlimit.DropTrailers)
	app.Post("/detail", told(names("X-A")))
	if got := answered(t, listening(t, app), chunkedHead+"\r\n4\r\nbody\r\n0\r\nX-A: 1\r\n\r\n"); got != unseen {
		t.Errorf("before DropTrailers: got %q, want %q", got, unseen)
	}
}

// A request that net/http hands on to Fiber has no trailer, though Fiber knows of
// no header that was sent.
func TestHeaderOfARequestMadeByHand(t *testing.T) {
	t.Parallel()
	app := fiber.New()
	app.All("/detail", told(names("X-A")))
	for _, method := range []string{"GET", "POST"} {
		r := httptest.NewRequest(method, "/detail", nil)
		r.Header.Set("X-A", "1")
		w := httptest.NewRecorder()
		adaptor.FiberApp(app).ServeHTTP(w, r)
		if got := w.Body.String(); got != `["1"] header:x-a=1` {
			t.Errorf("%s: got %q, want the field and its key", method, got)
		}
	}
}

// A key of Fiber's own sees no trailer, and leaves the header to the handler as it
// was.
func TestNativeKeySeesNoTrailer(t *testing.T) {
	t.Parallel()
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	peeked := func(c *fiber.Ctx) (all string) {
		for _, name := range []string{"X-A", "X-B", "X-Only", "X-Set"} {
			all += fmt.Sprintf("%s", c.Request().Header.PeekAll(name))
		}
		return all
	}
	kept, before := "", ""
	app.Use(func(c *fiber.Ctx) error {
		kept = c.Get("X-A")
		c.Request().Header.Set("X-Set", "middleware")
		before = peeked(c) // fasthttp adds a line again for each read that ends inside the trailer
		return c.Next()
	})
	key := fiberlimit.Key(func(c *fiber.Ctx) (string, error) {
		return peeked(c), nil
	})
	app.Post("/detail", func(c *fiber.Ctx) error {
		return fiberlimit.Handler(say(func(q gate.Request) string {
			k, err := key(q)
			return fmt.Sprintf("%s %v | %s %s", k, err, peeked(c), kept)
		}))(c)
	})
	got := answered(t, listening(t, app), chunkedHead+"X-A: 1\r\nX-B: 2\r\n\r\n1\r\na\r\n0\r\nX-A: 3\r\nX-Only: 4\r\n\r\n")
	if want := "200 [][2][][] <nil> | " + before + " 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !strings.HasPrefix(before, "[1 3") || !strings.HasSuffix(before, "[middleware]") {
		t.Errorf("the request came with %q, want X-A with its trailer, and X-Set of middleware", before)
	}
}

// A key of Fiber's own may read the body, with whose last chunk fasthttp takes the
// trailer.
func TestNativeKeyOfTheBodySeesNoTrailer(t *testing.T) {
	t.Parallel()
	for stream, want := range map[bool]string{false: "200 a [][] <nil>", true: "200 a [1][] <nil>"} {
		t.Run(fmt.Sprintf("Stream=%t", stream), func(t *testing.T) {
			t.Parallel()
			app := fiber.New(fiber.Config{StreamRequestBody: stream, DisableStartupMessage: true})
			key := fiberlimit.Key(func(c *fiber.Ctx) (string, error) {
				return fmt.Sprintf("%s %s%s", c.Body(), c.Request().Header.PeekAll("X-A"), c.Request().Header.PeekAll("X-Only")), nil
			})
			app.Post("/detail", told(func(q gate.Request) string {
				k, err := key(q)
				return fmt.Sprint(k, " ", err)
			}))
			got := answered(t, listening(t, app), chunkedHead+"X-A: 1\r\n\r\n1\r\na\r\n0\r\nX-A: 3\r\nX-Only: 4\r\n\r\n")
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// A key of Fiber's own leaves the handler the body that a gate outside has read.
func TestNativeKeyBehindAKeyOfTheBody(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		app := fiber.New(fiber.Config{StreamRequestBody: stream, DisableStartupMessage: true})
		native := fiberlimit.Key(func(c *fiber.Ctx) (string, error) { return c.Get("X-A") + string(c.Body()), nil })
		seen := ""
		app.Post("/detail", fiberlimit.Middleware(gatefake.Func(func(q gate.Request) gate.Pass {
			_, _ = q.Body(1 << 10)
			seen, _ = native(q)
			return gate.Pass{}
		})), func(c *fiber.Ctx) error { return c.Send(c.Body()) })
		got := answered(t, listening(t, app), chunkedHead+"X-A: 1\r\n\r\n4\r\nbody\r\n0\r\n\r\n")
		if got != "200 body" || seen != "1body" {
			t.Errorf("streamed %t: the key saw %q and the handler %q, want \"1body\" and \"200 body\"",
				stream, seen, got)
		}
	}
}

// An address that middleware has written into X-Forwarded-For cannot be told from
// one of a trailer. ByIP refuses it, and does not key it by the proxy.
func TestAnAddressThatATrailerMayHaveBrought(t *testing.T) {
	t.Parallel()
	limiter, err := limit.NewLocal("trailers", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	proxied := gate.ByIP(&gate.IPOptions{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	for name, c := range map[string]struct{ raw, want string }{
		"set by middleware": {"X-Rewrite: 9.9.9.9\r\n\r\n1\r\na\r\n0\r\n\r\n", "400"},
		"of a trailer":      {"\r\n1\r\na\r\n0\r\nX-Forwarded-For: 9.9.9.9\r\n\r\n", "400"},
		"added by it":       {"X-Add: 9.9.9.9\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n1\r\na\r\n0\r\n\r\n", "400"},
		"of both":           {"X-Forwarded-For: 8.8.8.8\r\n\r\n1\r\na\r\n0\r\nX-Forwarded-For: 9.9.9.9\r\n\r\n", "400"},
		"of the proxy":      {"X-Forwarded-For: 8.8.8.8\r\n\r\n1\r\na\r\n0\r\nX-Other: 9.9.9.9\r\n\r\n", "200 ip=8.8.8.8"},
		"none":              {"\r\n1\r\na\r\n0\r\n\r\n", "200 ip=127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := fiber.New(fiber.Config{DisableStartupMessage: true})
			app.Use(func(c *fiber.Ctx) error {
				if to := c.Get("X-Rewrite"); to != "" {
					c.Request().Header.Set("X-Forwarded-For", to)
				}
				if line := c.Get("X-Add"); line != "" {
					c.Request().Header.Add("X-Forwarded-For", line)
				}
				return c.Next()
			})
			app.Post("/detail", fiberlimit.Middleware(gatefake.Func(func(q gate.Request) gate.Pass {
				if key, err := proxied(q); err == nil {
					return respond(200, key)
				}
				return gate.RateLimit(limiter, proxied, nil).Enter(q)
			})))
			if got := answered(t, listening(t, app), chunkedHead+c.raw); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A field that a trailer may have brought is not there for a function of yours,
// and no key passes over it to the next.
func TestAFieldOfATrailerIsNoMissingKey(t *testing.T) {
	t.Parallel()
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Post("/detail", told(func(q gate.Request) string {
		key, err := gate.FirstOf(gate.ByHeader("X-Key"), gate.ByIP(nil))(q)
		return fmt.Sprintf("%d %q %t", len(q.Header("X-Key")), key, err != nil)
	}))
	address := listening(t, app)
	for trailer, want := range map[string]string{"X-Key: 1\r\n": `0 "" true`, "X-Other: 1\r\n": `0 "ip=127.0.0.1" false`} {
		if got := answered(t, address, chunkedHead+"\r\n1\r\na\r\n0\r\n"+trailer+"\r\n"); got != "200 "+want {
			t.Errorf("%q: got %q, want %q", trailer, got, want)
		}
	}
}

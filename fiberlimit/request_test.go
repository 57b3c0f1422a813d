package fiberlimit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/fiberlimit"
)

// Fiber's own Hostname believes X-Forwarded-Host here.
func TestHostBehindATrustedProxy(t *testing.T) {
	t.Parallel()
	app := fiber.New(fiber.Config{EnableTrustedProxyCheck: true, TrustedProxies: []string{"0.0.0.0"}})
	app.Get("/", told(func(q gate.Request) string {
		c, _ := fiberlimit.Context(q)
		return c.Hostname() + " " + q.Host()
	}))
	if got := ask(t, app, "/", "X-Forwarded-Host", "evil.example"); got != "evil.example example.com" {
		t.Errorf("got %q, want \"evil.example example.com\"", got)
	}
}

func TestHeaderNamesAreCanonicalWhenFiberLeavesThem(t *testing.T) {
	t.Parallel()
	app := fiber.New(fiber.Config{DisableHeaderNormalizing: true, DisableStartupMessage: true})
	app.Get("/detail", told(func(q gate.Request) string {
		var names []string
		for name := range q.Headers() {
			names = append(names, name)
		}
		return fmt.Sprint(q.Header("X-Api-Key"), q.Header("x-api-KEY"), names, slices.IsSorted(names))
	}))
	address := listening(t, app)
	got := exchanged(t, address, "GET /detail HTTP/1.1\r\nHost: example.com\r\nx-api-key: 1\r\nX-API-KEY: 2\r\n\r\n")
	if want := "200 [1 2] [1 2] [X-Api-Key X-Api-Key] true"; len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

type userID string

// Middleware that stores what c.Get returns stores memory that Fiber uses again.
func TestValuesMayBeKept(t *testing.T) {
	t.Parallel()
	var kept []any
	var keys, methods []string
	key := fiberlimit.Key(func(c *fiber.Ctx) (string, error) { return c.Get("X-User"), nil })
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Use(func(c *fiber.Ctx) error {
		c.Locals("string", c.Get("X-User"))
		c.Locals("named", userID(c.Get("X-User")))
		c.Locals("bytes", c.Request().Header.Peek("X-User"))
		c.Locals("number", 7)
		return c.Next()
	})
	app.All("/", told(func(q gate.Request) string {
		methods = append(methods, q.Method())
		for _, name := range []string{"string", "named", "bytes", "number", "missing"} {
			kept = append(kept, q.Value(name))
		}
		k, _ := key(q)
		keys = append(keys, k)
		return "ok"
	}))
	address := listening(t, app)
	raw := ""
	for _, sent := range []string{"GET alice", "PUT bobby", "DELETE carol"} {
		method, user, _ := strings.Cut(sent, " ")
		raw += method + " / HTTP/1.1\r\nHost: example.com\r\nX-User: " + user + "\r\nContent-Length: 0\r\n\r\n"
	}
	if got := exchanged(t, address, raw); len(got) != 3 {
		t.Fatalf("got %q, want three answers", got)
	}
	want := fmt.Sprintf("%q %q %q %v %v", "alice", userID("alice"), []byte("alice"), 7, nil)
	if got := fmt.Sprintf("%q %q %q %v %v", kept[:5]...); got != want {
		t.Errorf("what was %s is now %s, want no change", want, got)
	}
	if !slices.Equal(keys, []string{"alice", "bobby", "carol"}) {
		t.Errorf("the keys are now %q, want alice, bobby and carol", keys)
	}
	if !slices.Equal(methods, []string{"GET", "PUT", "DELETE"}) {
		t.Errorf("the methods are now %q, want GET, PUT and DELETE", methods)
	}
}

// What is behind a "#" is no part of the target for a handler.
func TestFragmentIsCutOff(t *testing.T) {
	t.Parallel()
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Get("/detail", told(func(q gate.Request) string { return q.Path() + " " + q.RawQuery() }))
	address := listening(t, app)
	for target, want := range map[string]string{
		"/detail#0":                              "200 /detail ",
		"/detail#0?q=1":                          "200 /detail ",
		"/detail?q=1#?#0":                        "200 /detail q=1",
		"/detail?q=%230":                         "200 /detail q=%230",
		"http://example.com/detail?q=1#http://0": "200 /detail q=1",
	} {
		got := exchanged(t, address, "GET "+target+" HTTP/1.1\r\nHost: example.com\r\n\r\n")
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}

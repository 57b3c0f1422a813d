package neighbours

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/session"
	storage "github.com/gofiber/storage/redis/v3"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

// sharedRedis is a client for both, and a limit on it.
func sharedRedis(t *testing.T, most int64) (*miniredis.Miniredis, *redis.Client, *limit.Limiter) {
	t.Helper()
	m := miniredis.RunT(t)
	rdb := redistest.Unhurried(&redis.Options{Addr: m.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { rdb.Close() })
	limiter, err := limit.New(rdb, "orders", []limit.Policy{limit.FixedWindow{Limit: most, Window: time.Hour}}, &limit.Options{Budget: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return m, rdb, limiter
}

// onFiber makes a handler of an app.
func onFiber(t *testing.T, app *fiber.App) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response, err := app.Test(r, -1)
		if err != nil {
			t.Error(err)
			return
		}
		defer response.Body.Close()
		maps.Copy(w.Header(), response.Header)
		w.WriteHeader(response.StatusCode)
	})
}

func fiberOrders(c *fiber.Ctx) error { return c.SendString("orders") }

// fiberSignIn is a login that believes anybody.
func fiberSignIn(c *fiber.Ctx) error {
	s := c.Locals("session").(*session.Session)
	s.Set("user", c.Query("user"))
	return s.Save()
}

func TestFiberSessions(t *testing.T) {
	t.Parallel()
	m, rdb, limiter := sharedRedis(t, 2)
	h := onFiber(t, FiberSessions(rdb, limiter, fiberSignIn, fiberOrders))
	first, second, alice := sessionOf(t, h, "bob"), sessionOf(t, h, "bob"), sessionOf(t, h, "alice")
	exchange(t, h,
		call{"bob", "/orders", first, "", 200},
		call{"bob in another session", "/orders", second, "", 200},
		call{"bob's third call", "/orders", first, "", 429},
		call{"alice", "/orders", alice, "", 200},
		call{"nobody, who names a key of neap as session", "/orders", line("Cookie", "session_id=neap:limit:orders:{user=bob}:window-2-1h"), "", 200},
	)
	id := strings.TrimPrefix(first.Get("Cookie"), "session_id=")
	if err := (Prefixed{storage.NewFromConnection(rdb), "session:"}).Delete(id); err != nil || m.Exists("session:"+id) {
		t.Errorf("a session that is deleted: got %v, and in Redis %t; want it gone", err, m.Exists("session:"+id))
	}
	ours := slices.DeleteFunc(m.Keys(), func(key string) bool { return strings.HasPrefix(key, "session:") })
	if len(m.Keys())-len(ours) != 2 || len(ours) != 3 || slices.ContainsFunc(ours, func(key string) bool { return !strings.HasPrefix(key, "neap:") }) {
		t.Errorf("Redis has the keys %q, want two under session: and three under neap:", m.Keys())
	}
}

// A bare storage reads the key that a cookie names: here a counter of neap, which is no session.
func TestFiberStorageWithoutPrefix(t *testing.T) {
	t.Parallel()
	m, rdb, limiter := sharedRedis(t, 1)
	if _, err := limiter.Take(t.Context(), "bob"); err != nil || len(m.Keys()) != 1 {
		t.Fatalf("a decision: got the keys %q, %v; want one", m.Keys(), err)
	}
	for what, c := range map[string]struct {
		storage fiber.Storage
		status  int
	}{
		"bare":     {storage.NewFromConnection(rdb), 500},
		"prefixed": {Prefixed{storage.NewFromConnection(rdb), "session:"}, 200},
	} {
		sessions := session.New(session.Config{Storage: c.storage})
		app := fiber.New()
		app.Get("/", func(c *fiber.Ctx) error {
			_, err := sessions.Get(c)
			return err
		})
		exchange(t, onFiber(t, app), call{what, "/", line("Cookie", "session_id="+m.Keys()[0]), "", c.status})
	}
}

// Reset of a bare storage deletes the limits too.
func TestFiberStorageReset(t *testing.T) {
	t.Parallel()
	_, rdb, limiter := sharedRedis(t, 1)
	bare := storage.NewFromConnection(rdb)
	for _, c := range []struct {
		what    string
		reset   func() error
		refused bool
		allowed bool
	}{
		{"at first", func() error { return nil }, false, true},
		{"the second time", func() error { return nil }, false, false},
		{"after Reset of a prefixed storage", session.New(session.Config{Storage: Prefixed{bare, "session:"}}).Reset, true, false},
		{"after Close of one", Prefixed{bare, "session:"}.Close, false, false},
		{"after Reset of a bare one", session.New(session.Config{Storage: bare}).Reset, false, true},
	} {
		if err := c.reset(); (err != nil) != c.refused {
			t.Errorf("%s: got %v, want an error: %t", c.what, err, c.refused)
		}
		if d, err := limiter.Take(t.Context(), "bob"); err != nil || d.Allowed != c.allowed || d.Degraded {
			t.Errorf("%s: got allowed %t, degraded %t, %v; want allowed %t by Redis", c.what, d.Allowed, d.Degraded, err, c.allowed)
		}
	}
}

package neighbours

import (
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/session"
	storage "github.com/gofiber/storage/redis/v3"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/fiberlimit"
)

// Prefixed keeps the keys of a storage of Fiber apart from others on the same Redis.
// Without a prefix a cookie can name any key, those of neap too. Reset of the storage,
// and so that of a session.Store, is FLUSHDB, which would delete all limits, locks and
// guards. Close of the storage would close the client, which neap uses as well.
type Prefixed struct {
	fiber.Storage
	Prefix string
}

// Get reads a key.
func (s Prefixed) Get(key string) ([]byte, error) { return s.Storage.Get(s.Prefix + key) }

// Set writes a key.
func (s Prefixed) Set(key string, value []byte, ttl time.Duration) error {
	return s.Storage.Set(s.Prefix+key, value, ttl)
}

// Delete deletes a key.
func (s Prefixed) Delete(key string) error { return s.Storage.Delete(s.Prefix + key) }

// Reset returns an error, and deletes nothing.
func (s Prefixed) Reset() error { return errors.New("Prefixed: Reset would delete the keys of others") }

// Close leaves the client open: its maker closes it.
func (s Prefixed) Close() error { return nil }

// FiberSessions has the sessions of Fiber and the limits of neap on one client,
// and limits each user. Make the client yourself, with ContextTimeoutEnabled: the
// client that storage.New makes, and that Conn returns, lacks it.
func FiberSessions(rdb *redis.Client, limiter *limit.Limiter, login, show fiber.Handler) *fiber.App {
	sessions := session.New(session.Config{
		Storage: Prefixed{Storage: storage.NewFromConnection(rdb), Prefix: "session:"},
	})
	perUser := gate.RateLimit(limiter, gate.FirstOf(gate.ByValue("user", "user"), gate.ByIP(nil)), nil)
	app := fiber.New()
	app.Use(func(c *fiber.Ctx) error {
		s, err := sessions.Get(c)
		if err != nil {
			return err
		}
		c.Locals("user", s.Get("user"))
		c.Locals("session", s)
		return c.Next()
	})
	app.Post("/login", login)
	app.Get("/orders", fiberlimit.Middleware(perUser), show)
	return app
}

package main

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	fiberidempotency "github.com/gofiber/fiber/v2/middleware/idempotency"
	fiberredis "github.com/gofiber/storage/redis/v3"
	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/fiberlimit"
)

const (
	bareFiber  = "Fiber alone"
	fibersOwn  = "Fiber's idempotency"
	neapFiber  = "neap behind Fiber"
	fiberIs    = "github.com/gofiber/fiber/v2"
	orders     = "/orders"
	userHeader = "X-Account"
	user       = "alice"
	orderBody  = `{"item":"a bicycle","quantity":1,"amount":"499.00","currency":"EUR"}`
)

// middleware stands before the handler; nil is nothing.
type middleware func(rdb redis.UniversalClient) (fiber.Handler, error)

// fiberGuards are called over HTTP.
func fiberGuards() []contestant {
	return []contestant{
		{name: bareFiber, kind: floor, group: overHTTP, guard: openFiber(nil), module: fiberIs,
			what: "a handler that answers with 1 KB, without any guard"},
		{name: fibersOwn, kind: peer, group: overHTTP, guard: openFiber(fibersMiddleware), module: fiberIs,
			what:       "its middleware/idempotency with its defaults, on " + versioned("github.com/gofiber/storage/redis/v3"),
			middleware: fibersMiddleware},
		{name: neapFiber, kind: ours, group: overHTTP, guard: openFiber(neapMiddleware),
			what:       "gate.Idempotent with its defaults, an account as principal",
			middleware: neapMiddleware},
	}
}

func fibersMiddleware(rdb redis.UniversalClient) (fiber.Handler, error) {
	return fiberidempotency.New(fiberidempotency.Config{Storage: fiberredis.NewFromConnection(rdb)}), nil
}

func neapMiddleware(rdb redis.UniversalClient) (fiber.Handler, error) {
	g, err := idempotency.New(rdb, "orders", idempotency.Retry{}, &idempotency.Options{Budget: budget})
	if err != nil {
		return nil, err
	}
	return fiberlimit.Middleware(gate.Idempotent(g, gate.ByHeader(userHeader), nil)), nil
}

func openFiber(m middleware) guardOpener {
	return func(ctx context.Context, e *env) (*guard, error) {
		s, err := newSite(ctx, e, m)
		if err != nil {
			return nil, err
		}
		ask := func(_ context.Context, key string) error {
			return s.post(key, user, orderBody, func(r *fasthttp.Response) error {
				if err := must(fiber.StatusCreated)(r); err != nil {
					return err
				}
				return same(r.Body(), nil)
			})
		}
		return &guard{first: ask, replay: ask, runs: s.runs.Load, unlocked: m == nil}, nil
	}
}

// site is a Fiber application that serves orders, and a client of it.
type site struct {
	client client
	runs   atomic.Int64
	work   func() // of the handler, before it answers
}

func noWork() {}

func newSite(ctx context.Context, e *env, m middleware) (*site, error) {
	s := &site{work: noWork}
	handlers := []fiber.Handler{s.order}
	if m != nil {
		guard, err := m(e.rdb)
		if err != nil {
			return nil, err
		}
		handlers = []fiber.Handler{guard, s.order}
	}
	app := fiber.New(fiber.Config{DisableStartupMessage: true, ErrorHandler: func(c *fiber.Ctx, _ error) error {
		return c.SendStatus(fiber.StatusInternalServerError)
	}})
	app.Post(orders, handlers...)
	stop := func() error { return app.ShutdownWithTimeout(10 * time.Second) }
	var err error
	s.client, err = e.serve(ctx, 64, app.Listener, stop)
	return s, err
}

// order says in Location which run of the handler made the answer.
func (s *site) order(c *fiber.Ctx) error {
	run := s.runs.Add(1)
	s.work()
	c.Set(fiber.HeaderContentType, "application/json")
	c.Set(fiber.HeaderLocation, orders+"/"+strconv.FormatInt(run, 10))
	c.Set(fiber.HeaderSetCookie, "session=of-the-first")
	return c.Status(fiber.StatusCreated).Send(answer)
}

// post sends a key by the names that all middlewares know.
func (s *site) post(key, user, body string, read func(*fasthttp.Response) error) error {
	return s.client.post(orders, []byte(body), read, fiber.HeaderContentType, "application/json",
		userHeader, user, "X-Idempotency-Key", key, "Idempotency-Key", key)
}

// reply is what a client sees.
type reply struct {
	status           int
	location, cookie string
}

func (s *site) reply(key, user, body string) (r reply, err error) {
	err = s.post(key, user, body, func(response *fasthttp.Response) error {
		r = reply{
			response.StatusCode(), string(response.Header.Peek(fiber.HeaderLocation)),
			string(response.Header.Peek(fiber.HeaderSetCookie)),
		}
		return nil
	})
	return r, err
}

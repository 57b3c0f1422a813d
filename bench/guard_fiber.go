package main

import (
	"context"
	"errors"
	"fmt"
	"net"
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
	orders     = "/orders"
	userHeader = "X-Account"
	theirKey   = "X-Idempotency-Key"
	standard   = "Idempotency-Key"
	runHeader  = "X-Run" // which run of the handler made the answer
	fiberIs    = "github.com/gofiber/fiber/v2"
	fiberStore = "github.com/gofiber/storage/redis/v3"
)

// middleware is what stands before the handler; nil is nothing.
type middleware func(rdb *redis.Client) (fiber.Handler, error)

func fiberGuardings() []guarding {
	return []guarding{
		{
			name: bareFiber, what: "a handler that answers with 1 KB, without any guard", kind: floor, module: fiberIs, kin: overHTTP,
			open: openFiber(nil),
		},
		{
			name: fibersOwn, what: "its middleware/idempotency with its defaults, on the storage below", kind: peer, module: fiberIs, kin: overHTTP,
			open: openFiber(fibersMiddleware), middleware: fibersMiddleware,
		},
		{
			name: neapFiber, what: "gate.Idempotent with its defaults, an account as principal", kind: ours, kin: overHTTP,
			open: openFiber(neapMiddleware), middleware: neapMiddleware,
		},
	}
}

func fibersMiddleware(rdb *redis.Client) (fiber.Handler, error) {
	return fiberidempotency.New(fiberidempotency.Config{Storage: fiberredis.NewFromConnection(rdb)}), nil
}

func neapMiddleware(rdb *redis.Client) (fiber.Handler, error) {
	g, err := idempotency.New(rdb, "orders", &idempotency.Options{Budget: budget})
	if err != nil {
		return nil, err
	}
	return fiberlimit.Middleware(gate.Idempotent(g, gate.ByHeader(userHeader), nil)), nil
}

// site is a Fiber application that serves orders, and a client of it.
type site struct {
	app    *fiber.App
	rdb    *redis.Client
	client *fasthttp.HostClient
	served chan error
	runs   atomic.Int64
	work   func(c *fiber.Ctx) // of the handler, before it answers
}

func newSite(e env, m middleware) (*site, error) {
	s := &site{
		app: fiber.New(fiber.Config{DisableStartupMessage: true, ErrorHandler: func(c *fiber.Ctx, err error) error {
			return c.SendStatus(fiber.StatusInternalServerError)
		}}),
		rdb: e.client(), served: make(chan error, 1), work: func(*fiber.Ctx) {},
	}
	handlers := []fiber.Handler{s.order}
	if m != nil {
		guard, err := m(s.rdb)
		if err != nil {
			return nil, errors.Join(err, s.rdb.Close())
		}
		handlers = append([]fiber.Handler{guard}, handlers...)
	}
	s.app.Post(orders, handlers...)
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, s.rdb.Close())
	}
	s.client = &fasthttp.HostClient{Addr: listener.Addr().String(), MaxConns: 64}
	go func() { s.served <- s.app.Listener(listener) }()
	return s, nil
}

func (s *site) order(c *fiber.Ctx) error {
	run := s.runs.Add(1)
	s.work(c)
	c.Set(fiber.HeaderContentType, "application/json")
	c.Set(fiber.HeaderLocation, orders+"/"+strconv.FormatInt(run, 10))
	c.Set(fiber.HeaderSetCookie, "session=of-the-first")
	c.Set(runHeader, strconv.FormatInt(run, 10))
	return c.Status(fiber.StatusCreated).Send(answer)
}

func (s *site) close() error {
	s.client.CloseIdleConnections()
	return errors.Join(s.app.ShutdownWithTimeout(10*time.Second), <-s.served, s.rdb.Close())
}

// reply is what a client sees.
type reply struct {
	status   int
	location string
	cookie   string
	body     string
}

func (s *site) post(key, user, body string) (r reply, err error) {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.Header.SetMethod(fasthttp.MethodPost)
	request.SetRequestURI("http://" + s.client.Addr + orders)
	request.Header.SetContentType("application/json")
	request.Header.Set(userHeader, user)
	request.Header.Set(theirKey, key)
	request.Header.Set(standard, key)
	request.SetBodyString(body)
	if err := s.client.Do(request, response); err != nil {
		return reply{}, err
	}
	return reply{
		response.StatusCode(), string(response.Header.Peek(fiber.HeaderLocation)),
		string(response.Header.Peek(fiber.HeaderSetCookie)), string(response.Body()),
	}, nil
}

const (
	user      = "alice"
	orderBody = `{"item":"a bicycle","quantity":1,"amount":"499.00","currency":"EUR"}`
)

func openFiber(m middleware) func(context.Context, env) (*guarded, error) {
	return func(_ context.Context, e env) (*guarded, error) {
		s, err := newSite(e, m)
		if err != nil {
			return nil, err
		}
		ask := func(key string) error {
			r, err := s.post(key, user, orderBody)
			if err == nil && (r.status != fiber.StatusCreated || r.body != string(answer)) {
				err = fmt.Errorf("answered %d with %d bytes", r.status, len(r.body))
			}
			return err
		}
		return &guarded{
			first:  func(_ context.Context, key string) error { return ask(key) },
			replay: func(_ context.Context, key string) error { return ask(key) },
			runs:   s.runs.Load, free: m == nil,
			close: s.close,
		}, nil
	}
}

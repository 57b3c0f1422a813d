package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"github.com/labstack/echo/v4"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/echolimit"
	"github.com/neap-go/neap/examples/internal/host"
	"github.com/neap-go/neap/fiberlimit"
	"github.com/neap-go/neap/ginlimit"
	"github.com/neap-go/neap/nethttp"
)

const (
	item        = "phone"
	buyerHeader = "X-Buyer" // a shop takes the buyer from its authentication
	lasts       = time.Hour
	payWithin   = 15 * time.Minute
)

// framework serves a shop: POST /flash/{item} behind its gate, and POST /paid.
type framework struct {
	name  string // as -framework takes it
	title string
	serve func(*shop) host.Server
}

var frameworks = []framework{
	{"nethttp", "net/http", func(s *shop) host.Server {
		mux := http.NewServeMux()
		mux.Handle("POST /flash/{item}", nethttp.Middleware(s.gate)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			status, order := s.buy(r.Context())
			w.WriteHeader(status)
			_, _ = io.WriteString(w, order)
		})))
		mux.Handle("POST /paid", nethttp.Handler(s.paid))
		return host.HTTP(mux)
	}},
	{"gin", "Gin", func(s *shop) host.Server {
		gin.SetMode(gin.ReleaseMode)
		r := gin.New()
		r.POST("/flash/:item", ginlimit.Middleware(s.gate), func(c *gin.Context) {
			status, order := s.buy(c.Request.Context())
			c.String(status, "%s", order)
		})
		r.POST("/paid", ginlimit.Handler(s.paid))
		return host.HTTP(r)
	}},
	{"echo", "Echo", func(s *shop) host.Server {
		e := echo.New()
		e.POST("/flash/:item", func(c echo.Context) error {
			status, order := s.buy(c.Request().Context())
			return c.String(status, order)
		}, echolimit.Middleware(s.gate))
		e.POST("/paid", echolimit.Handler(s.paid))
		return host.HTTP(e)
	}},
	{"fiber", "Fiber", func(s *shop) host.Server {
		app := fiber.New(fiber.Config{DisableStartupMessage: true})
		app.Post("/flash/:item", fiberlimit.Middleware(s.gate), func(c *fiber.Ctx) error {
			status, order := s.buy(c.UserContext())
			return c.Status(status).SendString(order)
		})
		app.Post("/paid", fiberlimit.Handler(s.paid))
		return host.By(app.Listener, app.ShutdownWithContext)
	}},
}

func names() []string {
	all := make([]string, len(frameworks))
	for i, f := range frameworks {
		all[i] = f.name
	}
	return all
}

// sell opens the phones, and sells them behind a framework.
func sell(ctx context.Context, rdb script.Client, prefix string, f framework, c crowd, out io.Writer) error {
	// The budget is for a machine that serves and buys at once.
	st, err := store.Open(rdb, &store.Options{Prefix: prefix, Budget: time.Minute})
	if err != nil {
		return err
	}
	phones, err := stock.New(st, f.name, &stock.Options{Lease: payWithin + time.Minute}) // a callback takes a while
	if err != nil {
		return err
	}
	if _, err := phones.Open(ctx, item, int64(c.units), time.Now().Add(lasts)); err != nil {
		return err
	}
	g := gate.Reserve(phones, gate.ByParam("item"), gate.ByHeader(buyerHeader), &gate.ReserveOptions{Confirm: !c.pay, Keep: c.pay})
	s, err := newShop(st, phones, g)
	if err != nil {
		return err
	}
	return play(ctx, s, f, c, out)
}

// play has the crowd come, and holds the sale to what it was told.
func play(ctx context.Context, s *shop, f framework, c crowd, out io.Writer) error {
	h, err := host.Listen(ctx, "127.0.0.1:0", f.serve(s))
	if err != nil {
		return err
	}
	t, err := c.buy(ctx, h.URL, newProgress(out, f.title, c.requests))
	if err := errors.Join(err, h.Stop(ctx, time.Minute)); err != nil {
		return err
	}
	fmt.Fprintf(out, "%-9s %s\n", f.title, t)
	return c.judge(ctx, s.phones, t)
}

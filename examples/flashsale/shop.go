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
)

// framework serves POST /flash/{item} behind a gate.
type framework struct {
	name  string // as -framework takes it
	title string
	serve func(gate.Gate) host.Server
}

var frameworks = []framework{
	{"nethttp", "net/http", func(g gate.Gate) host.Server {
		mux := http.NewServeMux()
		mux.Handle("POST /flash/{item}", nethttp.Middleware(g)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
		})))
		return host.HTTP(mux)
	}},
	{"gin", "Gin", func(g gate.Gate) host.Server {
		gin.SetMode(gin.ReleaseMode)
		r := gin.New()
		r.POST("/flash/:item", ginlimit.Middleware(g), func(c *gin.Context) { c.Status(http.StatusCreated) })
		return host.HTTP(r)
	}},
	{"echo", "Echo", func(g gate.Gate) host.Server {
		e := echo.New()
		e.POST("/flash/:item", func(c echo.Context) error { return c.NoContent(http.StatusCreated) }, echolimit.Middleware(g))
		return host.HTTP(e)
	}},
	{"fiber", "Fiber", func(g gate.Gate) host.Server {
		app := fiber.New(fiber.Config{DisableStartupMessage: true})
		app.Post("/flash/:item", fiberlimit.Middleware(g), func(c *fiber.Ctx) error { return c.SendStatus(http.StatusCreated) })
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
	st, err := store.Open(rdb, &store.Options{Prefix: prefix, Budget: 10 * time.Second})
	if err != nil {
		return err
	}
	phones, err := stock.New(st, f.name, nil)
	if err != nil {
		return err
	}
	if _, err := phones.Open(ctx, item, int64(c.units), time.Now().Add(lasts)); err != nil {
		return err
	}
	g := gate.Reserve(phones, gate.ByParam("item"), gate.ByHeader(buyerHeader), &gate.ReserveOptions{Confirm: true})
	return play(ctx, phones, g, f, c, out)
}

// play has the crowd come, and holds the sale to what it was told.
func play(ctx context.Context, phones *stock.Stock, g gate.Gate, f framework, c crowd, out io.Writer) error {
	h, err := host.Listen(ctx, "127.0.0.1:0", f.serve(g))
	if err != nil {
		return err
	}
	t, err := c.buy(ctx, h.URL+"/flash/"+item, newProgress(out, f.title, c.requests))
	if err := errors.Join(err, h.Stop(ctx, time.Minute)); err != nil {
		return err
	}
	fmt.Fprintf(out, "%-9s %s\n", f.title, t)
	return c.judge(ctx, phones, t)
}

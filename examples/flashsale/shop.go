package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/examples/internal/host"
	"github.com/neap-go/neap/nethttp"
)

const (
	item        = "phone"
	buyerHeader = "X-Buyer" // a shop takes the buyer from its authentication
	lasts       = time.Hour
	payWithin   = 15 * time.Minute
)

// serve makes a server of the shop: POST /flash/{item} behind its gate, and POST /paid.
func (s *shop) serve() host.Server {
	mux := http.NewServeMux()
	mux.Handle("POST /flash/{item}", nethttp.Middleware(s.gate)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, order := s.buy(r.Context())
		w.WriteHeader(status)
		_, _ = io.WriteString(w, order)
	})))
	mux.Handle("POST /paid", nethttp.Handler(s.paid))
	return host.HTTP(mux)
}

// sell opens the phones of a sale, and sells them.
func sell(ctx context.Context, rdb script.Client, prefix, name string, c crowd, out io.Writer) error {
	// The budget is for a machine that serves and buys at once.
	st, err := store.Open(rdb, &store.Options{Prefix: prefix, Budget: time.Minute})
	if err != nil {
		return err
	}
	phones, err := stock.New(st, name, &stock.Options{Lease: payWithin + time.Minute}) // a callback takes a while
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
	return play(ctx, s, c, out)
}

// play has the crowd come, and holds the sale to what it was told.
func play(ctx context.Context, s *shop, c crowd, out io.Writer) error {
	h, err := host.Listen(ctx, "127.0.0.1:0", s.serve())
	if err != nil {
		return err
	}
	t, err := c.buy(ctx, h.URL)
	if err := errors.Join(err, h.Stop(ctx, time.Minute)); err != nil {
		return err
	}
	fmt.Fprintln(out, t)
	return c.judge(ctx, s.phones, t)
}

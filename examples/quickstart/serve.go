package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/neap-go/neap/examples/internal/backend"
)

// serveBudget is more than the default: the first call on a small machine
// connects, and loads the script, before it decides.
const serveBudget = 250 * time.Millisecond

// serve serves the routes until ctx ends. All that serve on one Redis share
// their limits, whatever their framework.
func serve(ctx context.Context, stdout io.Writer, s *backend.Backend, cfg config) error {
	table, f := slices.Concat(routes(), flashRoutes(), callbackRoutes()), cfg.frameworks[0]
	w := wiring{
		redis: s.Redis, budget: cfg.budget, shadowed: reportShadow(slog.Default()),
	}
	if err := w.open(ctx); err != nil {
		return err
	}
	endpoints, err := w.guard(table)
	if err != nil {
		return err
	}
	h, err := listen(ctx, f, cfg.addr, endpoints)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s on %s, limits kept in %s. Try it:\n\n", f.title, h.URL, s.Where)
	fmt.Fprintf(stdout, "  for i in 1 2 3 4 5 6; do curl -si %s/detail; echo; done\n\n", h.URL)
	for _, r := range table {
		fmt.Fprintf(stdout, "  %-22s %s\n", strings.TrimSpace(r.method+" "+r.path+r.query), r.describe())
	}
	fmt.Fprintf(stdout, "\nBy client IP; /users/{id} by id, /key by the header %s, /exclusive by %s, /inflight all together.\n"+
		"/cost costs N; /login answers 200 or 401, and 200 takes nothing; /inflight, /exclusive and /orders\n"+
		"take N ms. What a shadow policy would have denied is logged. An order, twice:\n\n"+
		"  for i in 1 2; do curl -si %s/orders -H '%s: me' -H '%s: 1' \\\n"+
		"    --json '{\"item\":\"tea\"}'; echo; done\n\n"+
		"One of %d phones, and what is left:\n\n"+
		"  curl -si -X POST %s/flash/%s -H '%s: me'; curl -s %s/flash/%s\n\n"+
		"A payment, told of twice and booked once:\n\n"+
		"  for i in 1 2; do curl -si %s/callbacks/alipay -H '%s: ok' \\\n"+
		"    -d 'notify_id=1&out_trade_no=17&trade_status=TRADE_SUCCESS'; echo; done; curl -s %s/ledger\n",
		apiKeyHeader, orderHeader, h.URL, apiKeyHeader, keyHeader,
		flashUnits, h.URL, flashItem, buyerHeader, h.URL, flashItem,
		h.URL, signatureHeader, h.URL)

	select {
	case <-ctx.Done():
		return h.Stop(ctx, longest+5*time.Second)
	case err := <-h.Ended:
		return fmt.Errorf("%s stopped serving: %w", f.title, err)
	}
}

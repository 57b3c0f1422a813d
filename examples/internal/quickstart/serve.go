package quickstart

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/neap-go/neap/examples/internal/backend"
)

// serveBudget is more than the default: the first call on a small machine
// connects, and loads the script, before it decides.
const serveBudget = 250 * time.Millisecond

// hints tell how to try the routes. URL stands for the address of the server, and
// UNITS for how many phones there are.
const hints = `
By client IP; /users/{id} by id, /key and /tokens by the header ` + apiKeyHeader + `, /exclusive by ` + orderHeader + `, ` +
	`/inflight all together.
/three takes of all three limits or of none. /cost costs N. /login answers 200 or 401, and 200 takes nothing.
/inflight, /exclusive and /orders take N ms. What a shadow policy would have denied is logged.

A model that was to use 600 tokens and used 100, so that 900 of 1000 are left:

  curl -si -X POST 'URL/tokens?estimate=600&used=100' -H '` + apiKeyHeader + `: me'

An order, twice:

  for i in 1 2; do curl -si URL/orders -H '` + apiKeyHeader + `: me' -H '` + keyHeader + `: 1' \
    --json '{"item":"tea"}'; echo; done

One of UNITS phones, and what is left:

  curl -si -X POST URL/flash/` + flashItem + ` -H '` + buyerHeader + `: me'; curl -s URL/flash/` + flashItem + `

One that is held for a payment: what is answered as "order" is the out_trade_no below.

  curl -si -X POST URL/flash/` + flashItem + `/orders -H '` + buyerHeader + `: you'

A payment, told of twice and booked once:

  for i in 1 2; do curl -si URL/callbacks/alipay -H '` + signatureHeader + `: ok' \
    -d 'notify_id=1&out_trade_no=17&trade_status=TRADE_SUCCESS'; echo; done; curl -s URL/ledger

Stripe and WeChat Pay, whose resource is in the clear here:

  curl -si URL/callbacks/stripe -H '` + signatureHeader + `: ok' \
    --json '{"id":"evt_1","type":"charge.succeeded","data":{"object":{"id":"18"}}}'
  curl -si URL/callbacks/wechat -H '` + signatureHeader + `: ok' \
    --json '{"event_type":"TRANSACTION.SUCCESS","resource":{"mchid":"1","out_trade_no":"19"}}'
`

// serve serves the routes until ctx ends. All that serve on one Redis share
// their limits, whatever their framework.
func serve(ctx context.Context, stdout io.Writer, s *backend.Backend, cfg config) error {
	f := cfg.frameworks[0]
	w := wire(s.Redis, cfg.budget, reportShadow(slog.Default()))
	if err := w.open(ctx); err != nil {
		return err
	}
	sales := &account{}
	menu := slices.Concat(routes(w), flashRoutes(w, sales), callbackRoutes(w, sales))
	if w.err != nil {
		return w.err
	}
	h, err := f.listen(ctx, cfg.addr, menu)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s on %s, limits kept in %s. Try it:\n\n", f.Title, h.URL, s.Where)
	fmt.Fprintf(stdout, "  for i in 1 2 3 4 5 6; do curl -si %s/detail; echo; done\n\n", h.URL)
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, r := range menu {
		fmt.Fprintf(table, "  %s\t%s\n", strings.TrimSpace(r.method+" "+r.Path+r.query), r.says)
	}
	_ = table.Flush() // what cannot be printed is no reason not to serve
	fmt.Fprint(stdout, strings.NewReplacer("URL", h.URL, "UNITS", strconv.Itoa(flashUnits)).Replace(hints))

	select {
	case <-ctx.Done():
		return h.Stop(ctx, longest+5*time.Second)
	case err := <-h.Ended:
		return fmt.Errorf("%s stopped serving: %w", f.Title, err)
	}
}

package neighbours

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/nethttp"
)

// Huma turns a gate into middleware of huma, for one operation or for a whole API on
// humago. For another router take that adapter's Unwrap and NewContext. WithContext
// hands on what huma's middleware has stored: without it ByValue finds nothing.
func Huma(g gate.Gate) func(huma.Context, func(huma.Context)) {
	limited := nethttp.Middleware(g)
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next(humago.NewContext(ctx.Operation(), r, w))
		})).ServeHTTP(w, r.WithContext(ctx.Context()))
	}
}

// NewOrder is the input of PlaceOrder.
type NewOrder struct {
	Key  string `doc:"the same for each repetition of one order" header:"Idempotency-Key"`
	Body struct {
		Item string `json:"item" minLength:"1"`
	}
}

// Placed is the output of PlaceOrder.
type Placed struct {
	Body struct {
		Item string `json:"item"`
	}
}

// PlaceOrder adds an operation that runs once for each key. huma checks the input
// inside of the gate, so the gate stores huma's 422 under the key, as it stores any
// answer: a client that corrects its order sends it under a new key. Errors writes
// the statuses of the gates into the OpenAPI document.
func PlaceOrder(api huma.API, limited, once gate.Gate, place func(context.Context, *NewOrder) (*Placed, error)) {
	huma.Register(api, huma.Operation{
		OperationID: "place-order", Method: http.MethodPost, Path: "/orders",
		Middlewares: huma.Middlewares{Huma(limited), Huma(once)},
		Errors:      []int{400, 401, 409, 413, 422, 429, 503},
	}, place)
}

package neighbours

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/gatefake"
	"github.com/neap-go/neap/nethttp"
)

type userKey struct{}

// humaShop authenticates by huma's own middleware, and counts the orders.
func humaShop(t *testing.T, runs *int) http.Handler {
	t.Helper()
	guard, err := idempotency.New(gatefake.Redis(t), "orders", idempotency.Retry{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	api := humago.New(mux, huma.DefaultConfig("shop", "1"))
	api.UseMiddleware(func(ctx huma.Context, next func(huma.Context)) {
		if user := ctx.Header("X-User"); user != "" {
			ctx = huma.WithValue(ctx, userKey{}, user)
		}
		next(ctx)
	})
	PlaceOrder(api, gate.RateLimit(atMost(t, 4), gate.ByValue("user", userKey{}), nil), gate.Idempotent(guard, gate.ByValue("user", userKey{}), nil),
		func(ctx context.Context, order *NewOrder) (*Placed, error) {
			if claim, ok := idempotency.FromContext(ctx); !ok || claim.Attempt() != 1 {
				t.Errorf("the handler finds the claim %v, %t, want one of the first attempt", claim, ok)
			}
			*runs++
			placed := &Placed{}
			placed.Body.Item = order.Body.Item
			return placed, nil
		})
	return mux
}

func TestHuma(t *testing.T) {
	t.Parallel()
	runs := 0
	h := humaShop(t, &runs)
	for _, c := range []struct {
		what, user, key, body string
		status                int
		problem, replayed     string
		runs                  int
	}{
		{"nobody", "", "a", `{"item":"tea"}`, 401, "about:blank", "", 0},
		{"an order", "bob", "a", `{"item":"tea"}`, 200, "", "", 1},
		{"the order again", "bob", "a", `{"item":"tea"}`, 200, "", "true", 1},
		{"another under its key", "bob", "a", `{"item":"ale"}`, 422, gate.TypeIdempotency, "", 1},
		{"no item, which huma refuses", "bob", "b", `{"item":""}`, 422, "about:blank", "", 1},
		{"beyond bob's limit", "bob", "c", `{"item":"tea"}`, 429, "https://iana.org/", "", 1},
		{"no key", "eve", "", `{"item":"tea"}`, 400, gate.TypeIdempotency, "", 1},
		{"no item", "eve", "b", `{"item":""}`, 422, "about:blank", "", 1},
		{"no item again", "eve", "b", `{"item":""}`, 422, "about:blank", "true", 1},
		{"the item corrected, the key the same", "eve", "b", `{"item":"tea"}`, 422, gate.TypeIdempotency, "", 1},
	} {
		r := httptest.NewRequest("POST", "/orders", strings.NewReader(c.body))
		r.Header.Set("Content-Type", "application/json")
		for name, value := range map[string]string{"X-User": c.user, "Idempotency-Key": c.key} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status || w.Header().Get("Idempotent-Replayed") != c.replayed || runs != c.runs {
			t.Errorf("%s: got %d, replayed %q, %d runs: %s; want %d, %q, %d", c.what,
				w.Code, w.Header().Get("Idempotent-Replayed"), runs, w.Body, c.status, c.replayed, c.runs)
		}
		if c.problem == "" {
			continue
		}
		problem := struct {
			Type   string
			Status int
		}{Type: "about:blank"} // what RFC 9457 has an absent type mean
		if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil || w.Header().Get("Content-Type") != "application/problem+json" ||
			problem.Status != c.status || !strings.HasPrefix(problem.Type, c.problem) {
			t.Errorf("%s: got the document %q %s, %v; want a problem %s with the status", c.what, w.Header().Get("Content-Type"), w.Body, err, c.problem)
		}
	}
}

func TestHumaDocument(t *testing.T) {
	t.Parallel()
	runs := 0
	w := httptest.NewRecorder()
	humaShop(t, &runs).ServeHTTP(w, httptest.NewRequest("GET", "/openapi.json", nil))
	for _, part := range []string{`"Idempotency-Key"`, `"409"`, `"429"`, `"503"`} {
		if !strings.Contains(w.Body.String(), part) {
			t.Errorf("the OpenAPI document lacks %s: %s", part, w.Body)
		}
	}
}

// Without WithContext a gate sees the request as huma got it, without what
// middleware of huma has stored.
func TestHumaWithoutItsContext(t *testing.T) {
	t.Parallel()
	forgetful := func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		nethttp.Middleware(told(gate.ByValue("user", userKey{})))(http.NotFoundHandler()).ServeHTTP(w, r)
	}
	for what, c := range map[string]struct {
		gated func(huma.Context, func(huma.Context))
		want  string
	}{
		"without": {forgetful, "gate: refused: The request is not authenticated"},
		"with":    {Huma(told(gate.ByValue("user", userKey{}))), "user=bob"},
	} {
		mux := http.NewServeMux()
		api := humago.New(mux, huma.DefaultConfig("shop", "1"))
		api.UseMiddleware(func(ctx huma.Context, next func(huma.Context)) { next(huma.WithValue(ctx, userKey{}, "bob")) }, c.gated)
		huma.Get(api, "/", func(context.Context, *struct{}) (*Placed, error) { return &Placed{}, nil })
		if got := keyOf(mux, "/"); got != c.want {
			t.Errorf("%s the context: got the key %q, want %q", what, got, c.want)
		}
	}
}

// TestHumaRoute: humago stands on an http.ServeMux, whose routes gates know.
func TestHumaRoute(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	api := humago.New(mux, huma.DefaultConfig("shop", "1"))
	api.UseMiddleware(Huma(told(gate.Join(gate.ByRoute(), gate.ByParam("order")))))
	huma.Get(api, "/orders/{order}", func(context.Context, *struct{}) (*Placed, error) { return &Placed{}, nil })
	if got := keyOf(mux, "/orders/7"); !strings.Contains(got, "/orders/{order}") || !strings.Contains(got, "param:order=7") {
		t.Errorf("got the key %q, want the route /orders/{order} and param:order=7", got)
	}
}

package usecases

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/neaptest"
	"github.com/neap-go/neap/nethttp"
)

type usageKey struct{}

// TestKnownAfterwards: what was used counts, and not the estimate of 15,000 of 20,000 tokens.
func TestKnownAfterwards(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, err := KnownAfterwards(neaptest.New(t).Client(),
			func(gate.Request) (int64, error) { return 15_000, nil },
			func(ctx context.Context) int64 { return *ctx.Value(usageKey{}).(*int64) })
		if err != nil {
			t.Fatal(err)
		}
		model := nethttp.Middleware(g)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			used := r.Context().Value(usageKey{}).(*int64)
			*used, _ = strconv.ParseInt(r.URL.Query().Get("uses"), 10, 64)
			if r.URL.Query().Has("panics") {
				panic(http.ErrAbortHandler)
			}
		}))
		for _, c := range []struct {
			uses string
			want int
		}{{"1000", 200}, {"1000&panics", 0}, {"3000", 200}, {"25000", 200}, {"1", 429}} {
			ctx := context.WithValue(t.Context(), tenantKey{}, Tenant{ID: "ann"})
			ctx = context.WithValue(ctx, usageKey{}, new(int64))
			response, err := neaptest.Handler(model)(httptest.NewRequest("POST", "/v1/chat?uses="+c.uses, nil).WithContext(ctx))
			got := 0
			if err == nil {
				got = response.StatusCode
				response.Body.Close()
			}
			if got != c.want {
				t.Errorf("one that uses %s: got %d, %v, want %d", c.uses, got, err, c.want)
			}
		}
	})
}

package fiberlimit_test

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/fiberlimit"
	"github.com/neap-go/neap/internal/gatefake"
)

// A request that net/http passes on to Fiber has no trailer, although Fiber has no raw
// header for it.
func TestHeaderOfARequestMadeByHand(t *testing.T) {
	t.Parallel()
	app := fiber.New()
	app.All("/detail", fiberlimit.Handler(gatefake.Endpoint(func(q gate.Request) gate.Reply {
		key, err := gate.ByHeader("X-A")(q)
		return gate.Reply{Status: 200, Body: fmt.Appendf(nil, "%q %s %v", q.Header("X-A"), key, err)}
	})))
	for _, method := range []string{"GET", "POST"} {
		r := httptest.NewRequest(method, "/detail", nil)
		r.Header.Set("X-A", "1")
		w := httptest.NewRecorder()
		adaptor.FiberApp(app).ServeHTTP(w, r)
		if got := w.Body.String(); got != `["1"] header:x-a=1 <nil>` {
			t.Errorf("%s: got %q, want the field and its key", method, got)
		}
	}
}

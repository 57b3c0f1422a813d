package callback_test

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

// The handler has what the provider sent, and the request's values; its context
// does not end when the provider hangs up.
func TestHandlerOutlivesTheRequest(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	type mark struct{}
	ctx, hangUp := context.WithCancel(context.WithValue(t.Context(), mark{}, "this request"))
	s, p := &shop{}, callback.Alipay()
	s.handle = func(ctx context.Context, e *callback.Event) error {
		d := e.Delivery
		if d.Method != "POST" || d.Path != "/callback" || d.RawQuery != "a=b" || string(d.Body) != alipayForm ||
			!slices.Equal(d.Header.Values("X-Twice"), []string{"1", "2"}) || string(e.Payload) != alipayForm {
			t.Errorf("it gets %+v", d)
		}
		hangUp()
		if ctx.Err() != nil || ctx.Value(mark{}) != "this request" {
			t.Errorf("its context: %v, %v", ctx.Err(), ctx.Value(mark{}))
		}
		return nil
	}
	g := guard(t, srv.Client(t), srv.Prefix(t), idempotency.Options{})
	h := endpoint(t, p, g, s, callback.Options{})
	r := httptest.NewRequestWithContext(ctx, "POST", "/callback?a=b", strings.NewReader(alipayForm))
	r.Header.Set(signature, "ok")
	r.Header["X-Twice"] = []string{"1", "2"}
	h.ServeHTTP(httptest.NewRecorder(), r)
	redistest.Await(t, time.Minute, "the booking to be noted", func() bool { return g.Stats().Completed == 1 })
	deliver(h, alipayForm).is(t, p.Done)
	s.once(t, 1)
}

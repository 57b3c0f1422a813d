package callback_test

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

// The handler gets what the provider sent, and the request's values. Its context does not
// end when the provider closes the connection.
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
			t.Errorf("the handler got %+v, want the delivery as it was sent", d)
		}
		hangUp()
		if ctx.Err() != nil || ctx.Value(mark{}) != "this request" {
			t.Errorf("its context: got %v, %v, want no error and this request's value", ctx.Err(), ctx.Value(mark{}))
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

// Attempts are counted, and each has a larger fence than the one before.
func TestAttempts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		var attempts, fences []int64
		s, p := &shop{}, callback.Alipay()
		s.handle = func(_ context.Context, e *callback.Event) error {
			attempts, fences = append(attempts, e.Attempt), append(fences, e.Fence)
			if len(attempts) < 2 {
				return errBook
			}
			return nil
		}
		h := endpoint(t, p, guard(t, rdb, prefix, idempotency.Options{}), s, callback.Options{})
		deliver(h, alipayForm).is(t, p.Later)
		deliver(h, alipayForm).is(t, p.Done)
		if len(attempts) != 2 || attempts[0] != 1 || attempts[1] != 2 || fences[1] <= fences[0] {
			t.Errorf("got the attempts %v and the fences %v, want 1 and 2, and a fence that grows", attempts, fences)
		}
	})
}

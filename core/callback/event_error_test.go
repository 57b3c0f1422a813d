package callback_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
)

// An operator learns which event needs attention.
func ExampleEventError() {
	onError := func(_ context.Context, err error) {
		if event, ok := errors.AsType[*callback.EventError](err); ok && errors.Is(err, idempotency.ErrInDoubt) {
			fmt.Println("ask", event.Provider, "about order", event.Order, "and resolve", event.Key)
			return
		}
		fmt.Println(err)
	}
	onError(context.Background(), &callback.EventError{
		Provider: "alipay", Event: &callback.Event{Key: "alipay:n1", Item: callback.Item{Order: "o1"}}, Err: idempotency.ErrInDoubt,
	})
	// Output: ask alipay about order o1 and resolve alipay:n1
}

// Each error of an event that the hook gets names the event in its fields, and not in its
// text.
func TestEventError(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		for name, c := range map[string]struct {
			handle callback.Handler
			told   []error
		}{
			"fails":   {func(context.Context, *callback.Event) error { return errBook }, []error{errBook, idempotency.ErrInDoubt}},
			"rejects": {func(context.Context, *callback.Event) error { return callback.Reject(errBook) }, []error{errBook}},
			"panics":  {func(context.Context, *callback.Event) error { panic(errBook) }, []error{idempotency.ErrInDoubt, nil}},
			"ends": {func(context.Context, *callback.Event) error {
				runtime.Goexit()
				return nil
			}, []error{idempotency.ErrInDoubt, nil}},
			"lost": {func(ctx context.Context, e *callback.Event) error {
				if err := rdb.Del(ctx, prefix+"lost:guard:callbacks:{"+e.Key+"}").Err(); err != nil {
					t.Error(err)
				}
				claim, _ := idempotency.FromContext(ctx)
				_ = claim.Renew(ctx)
				return nil
			}, []error{idempotency.ErrLost}},
		} {
			s, p := &shop{handle: c.handle}, callback.Alipay()
			h := endpoint(t, p, guardOf(t, rdb, prefix+name, idempotency.Reject{}, idempotency.Options{}), s, callback.Options{})
			deliver(h, alipayForm)
			if len(s.told) != len(c.told) {
				t.Errorf("%s: the hook got %v, want %d errors", name, s.told, len(c.told))
			}
			for i, err := range s.told {
				of, ok := errors.AsType[*callback.EventError](err)
				if !ok || of.Provider != "alipay" || of.Key != alipayKey || of.Order != "o1" ||
					strings.Contains(err.Error(), alipayKey) || i < len(c.told) && c.told[i] != nil && !errors.Is(err, c.told[i]) {
					t.Errorf("%s: the hook got %v, want an *EventError of the event, and its key not in the text",
						name, err)
				}
			}
		}
	})
}

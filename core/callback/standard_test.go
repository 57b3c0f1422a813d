package callback_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/neap-go/neap/core/callback"
)

// TestSvixFields has Svix's names for the fields of the specification's vector.
func TestSvixFields(t *testing.T) {
	t.Parallel()
	const (
		secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
		id     = "msg_p5jXN8AQM9LWM0D4loKWxJek"
		body   = `{"test": 2432232314}`
		good   = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
		now    = 1614265330
	)
	stamp := fmt.Sprint(now)
	fields := func(prefix, id, stamp, signature string) []string {
		return []string{prefix + "-id", id, prefix + "-timestamp", stamp, prefix + "-signature", signature}
	}
	svix, standard := fields("svix", id, stamp, good), fields("webhook", id, stamp, good)
	at(t, now, func(t *testing.T) {
		v, p := must(t, callback.VerifyStandardWebhooks, secret), callback.StandardWebhooks("acme")
		for _, c := range []struct {
			header []string
			want   bool
		}{
			{svix, true},
			{fields("svix", id, stamp, "v1,AAAA v1a,x "+good), true},
			{slices.Concat(svix, standard), true},
			{slices.Concat(svix[:2], standard[2:]), true},
			{fields("svix", id+"x", stamp, good), false},
			{fields("svix", id+".1", stamp, good), false},
			{fields("svix", id, fmt.Sprint(now+1), good), false},
			{fields("svix", id, stamp, "v1,AAAA"), false},
			{svix[2:], false}, {svix[:4], false},
			{slices.Concat(svix, svix[:2]), false},
			{slices.Concat(svix, fields("webhook", id+"x", stamp, good)), false},
			{slices.Concat(standard, fields("svix", id+"x", stamp, good)), false},
			{slices.Concat(standard, fields("svix", id, fmt.Sprint(now+1), good)), false},
			{slices.Concat(standard, fields("svix", id, stamp, "v1,AAAA")), false},
			{slices.Concat(standard, []string{"svix-id", ""}), false},
		} {
			if got := verified(t, v, signedDelivery(body, c.header...)); got != c.want {
				t.Errorf("%q: got it proven %t, want %t", c.header, got, c.want)
			}
		}
		for _, header := range [][]string{standard, svix, slices.Concat(svix, standard)} {
			if item := itemOf(t, p, delivery(body, header...), body); item.DeliveryID != id {
				t.Errorf("%q: got %+v, want the id %s", header, item, id)
			}
		}
		for _, header := range [][]string{{"svix-id", ""}, {"svix-id", "a", "svix-id", "b"}, {"svix-id", "a", "webhook-id", "b"}} {
			if items, err := p.Items(delivery(body, header...), nil); !errors.Is(err, callback.ErrMalformed) {
				t.Errorf("%q: got %+v, %v, want %v", header, items, err, callback.ErrMalformed)
			}
		}
	})
}

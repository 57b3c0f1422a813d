package fleet

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

var errBooks = errors.New("the books are closed")

// A provider gets its acknowledgement, its "later" and its refusal byte for byte,
// whatever framework serves the endpoint, and no Content-Type that the preset has
// not.
func (f Fleet) testProvidersGetTheirBytes(t *testing.T) {
	t.Parallel()
	const text, json = "Content-Type: text/plain; charset=utf-8\n", "Content-Type: application/json\n"
	event := func(id string) string {
		return `{"id":"` + id + `","type":"t","event_type":"t","event_id":"` + id + `"}`
	}
	for name, p := range map[string]struct {
		preset               callback.Preset
		body                 func(id string) string
		done, later, refused answer
	}{
		"Stripe":           {callback.Stripe(), event, answer{200, "", ""}, answer{503, "", ""}, answer{400, "", ""}},
		"PayPal":           {callback.PayPal(), event, answer{200, "", ""}, answer{503, "", ""}, answer{400, "", ""}},
		"Square":           {callback.Square(), event, answer{200, "", ""}, answer{503, "", ""}, answer{400, "", ""}},
		"GitHub":           {callback.GitHub(), event, answer{200, "", ""}, answer{503, "", ""}, answer{400, "", ""}},
		"Shopify":          {callback.Shopify(), event, answer{200, "", ""}, answer{503, "", ""}, answer{400, "", ""}},
		"StandardWebhooks": {callback.StandardWebhooks("acme"), event, answer{200, "", ""}, answer{503, "", ""}, answer{400, "", ""}},
		"Alipay": {
			callback.Alipay(), func(id string) string { return "notify_id=" + id + "&out_trade_no=o&trade_status=s" },
			answer{200, text, "success"}, answer{503, text, "fail"}, answer{400, text, "fail"},
		},
		"WeChatPay": {
			callback.WeChatPay(), func(id string) string { return `{"event_type":"t","resource":{"out_trade_no":"` + id + `"}}` },
			answer{204, "", ""},
			answer{503, json, `{"code":"FAIL","message":"send it again later"}`},
			answer{400, json, `{"code":"FAIL","message":"the notification is refused"}`},
		},
		"Adyen": {
			callback.Adyen(), func(id string) string {
				return `{"notificationItems":[{"NotificationRequestItem":{"eventCode":"c","pspReference":"` + id + `","success":"true"}}]}`
			},
			answer{200, text, "[accepted]"}, answer{503, "", ""}, answer{400, "", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
				guard, err := idempotency.New(storetest.At(t, rdb, prefix), "callbacks", idempotency.Retry{}, &idempotency.Options{
					Retention: p.preset.Retention, Budget: 5 * time.Second, // a busy machine answers late
				})
				if err != nil {
					t.Fatal(err)
				}
				verify := func(_ context.Context, d *callback.Delivery) ([]byte, error) { return d.Body, nil }
				book := func(_ context.Context, e *callback.Event) error {
					switch {
					case strings.Contains(string(e.Payload), "later"):
						return errBooks
					case strings.Contains(string(e.Payload), "never"):
						return callback.Reject(errBooks)
					}
					return nil
				}
				endpoint, err := callback.New(p.preset, guard, verify, book, nil)
				if err != nil {
					t.Fatal(err)
				}
				for framework, of := range f {
					address := of.Endpoint(t, endpoint)
					for id, want := range map[string]answer{"now": p.done, "later": p.later, "never": p.refused} {
						for range 2 {
							got, err := post(address, "/orders/1", p.body(id+framework), "Webhook-Id", "msg-"+id+framework, "Shopify-Topic", "t", "Shopify-Event-Id", id+framework)
							if got != want || err != nil {
								t.Errorf("%s, %s: got %+v, %v, want %+v", framework, id, got, err, want)
							}
						}
					}
				}
			}, redistest.OnMiniredis)
		})
	}
}

package usecases

import (
	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
)

// ShopifyTopic receives what subscriptions of one topic send. Each topic has a name, such as
// shopify-orders-paid, and an address of its own: two topics may report one change with the
// same bytes.
func ShopifyTopic(name, clientSecret string, guard *idempotency.Guard, book callback.Handler, opts *callback.Options) (*callback.Endpoint, error) {
	verify, err := callback.VerifyShopify(clientSecret)
	if err != nil {
		return nil, err
	}
	preset := callback.Shopify()
	preset.Name = name
	return callback.New(preset, guard, verify, book, opts)
}

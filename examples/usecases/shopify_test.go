package usecases

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/internal/gatefake"
	"github.com/neap-go/neap/nethttp"
)

// Two topics report one change with the same bytes: each is handled, once. What comes under
// another event id is told.
func TestShopifyTopics(t *testing.T) {
	t.Parallel()
	const secret, body = "the client secret of the app", `{"id":820982911946154508,"financial_status":"paid"}`
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	signature := base64.StdEncoding.EncodeToString(mac.Sum(nil))
	guard, err := AnyProvider(gatefake.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	var booked []string
	told := 0
	for _, topic := range []string{"orders/create", "orders/paid"} {
		endpoint, err := ShopifyTopic("shopify-"+strings.ReplaceAll(topic, "/", "-"), secret, guard,
			func(context.Context, *callback.Event) error { booked = append(booked, topic); return nil },
			&callback.Options{OnError: func(_ context.Context, err error) {
				if !errors.Is(err, callback.ErrAnotherDelivery) {
					t.Error(err)
				}
				told++
			}})
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range []string{"e1", "e1", "e2"} {
			r := httptest.NewRequest("POST", "/callbacks/"+topic, strings.NewReader(body))
			r.Header.Set("Shopify-Hmac-Sha256", signature)
			r.Header.Set("Shopify-Topic", topic)
			r.Header.Set("Shopify-Event-Id", event)
			w := httptest.NewRecorder()
			nethttp.Handler(endpoint).ServeHTTP(w, r)
			if w.Code != 200 {
				t.Errorf("%s of %s: got %d, want 200", event, topic, w.Code)
			}
		}
	}
	if want := []string{"orders/create", "orders/paid"}; !slices.Equal(booked, want) || told != 2 {
		t.Errorf("got %q booked and %d told, want %q, and of each the copy told", booked, told, want)
	}
	if _, err := ShopifyTopic("shopify", "", guard, nil, nil); err == nil {
		t.Error("an empty secret: got no error")
	}
}

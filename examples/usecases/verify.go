package usecases

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/neap-go/neap/core/callback"
)

// AdyenVerify lets an SDK check the signature of each item.
func AdyenVerify(valid func(item json.RawMessage) bool) callback.Verify {
	return func(_ context.Context, d *callback.Delivery) ([]byte, error) {
		var batch struct {
			Items []struct {
				Item json.RawMessage `json:"NotificationRequestItem"`
			} `json:"notificationItems"`
		}
		if err := json.Unmarshal(d.Body, &batch); err != nil {
			return nil, err
		}
		for _, i := range batch.Items {
			if !hasSignature(i.Item) || !valid(i.Item) {
				return nil, errors.New("an item is not signed")
			}
		}
		if len(batch.Items) == 0 {
			return nil, errors.New("nothing is signed")
		}
		return d.Body, nil
	}
}

// hasSignature says whether there is something to check: some versions of
// ValidateHmac panic where there is not.
func hasSignature(item json.RawMessage) bool {
	var i struct {
		AdditionalData map[string]any `json:"additionalData"`
	}
	if err := json.Unmarshal(item, &i); err != nil {
		return false
	}
	signature, _ := i.AdditionalData["hmacSignature"].(string)
	return signature != ""
}

// SquareVerify lets an SDK check the signature.
func SquareVerify(verifySignature func(ctx context.Context, body, signature string) error) callback.Verify {
	return func(ctx context.Context, d *callback.Delivery) ([]byte, error) {
		signature := d.Header.Get("X-Square-Hmacsha256-Signature")
		if len(d.Body) == 0 || signature == "" {
			return nil, errors.New("nothing is signed") // the SDK takes an empty body for signed
		}
		return d.Body, verifySignature(ctx, string(d.Body), signature)
	}
}

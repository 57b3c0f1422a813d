package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/neap-go/neap/core/callback"
)

// The secrets that the shop shares with the simulator.
const (
	stripeSecret   = "whsec_stripe"
	githubSecret   = "github"
	standardSecret = "whsec_c3RhbmRhcmQtd2ViaG9va3Mtc2VjcmV0"
	sdkSecret      = "whsec_stands in for a provider's key pair" // VerifyStripe stands in for an SDK
	wechatKey      = "a key of AES-256 has 32 bytes..."
)

const (
	stripeField = "Stripe-Signature"
	sdkField    = "X-Demo-Signature"
)

// must is for secrets that are constants here.
func must(v callback.Verify, err error) callback.Verify {
	if err != nil {
		panic(err)
	}
	return v
}

// sdk stands in for the verification of a provider's own SDK: a signature of body
// and time.
func sdk() callback.Verify {
	signed := must(callback.VerifyStripe(sdkSecret))
	return func(ctx context.Context, d *callback.Delivery) ([]byte, error) {
		return signed(ctx, &callback.Delivery{Header: http.Header{stripeField: d.Header.Values(sdkField)}, Body: d.Body})
	}
}

// wechat opens a notification that is proven: what is believed has the resource in
// the clear, in the place where it was encrypted.
func wechat() callback.Verify {
	verify := sdk()
	return func(ctx context.Context, d *callback.Delivery) ([]byte, error) {
		body, err := verify(ctx, d)
		if err != nil {
			return nil, err
		}
		var sealed struct {
			ID        string `json:"id"`
			EventType string `json:"event_type"`
			Resource  struct {
				Ciphertext     string `json:"ciphertext"`
				AssociatedData string `json:"associated_data"`
				Nonce          string `json:"nonce"`
			} `json:"resource"`
		}
		if err := json.Unmarshal(body, &sealed); err != nil {
			return nil, err
		}
		box, err := wechatBox()
		if err != nil {
			return nil, err
		}
		ciphertext, err := base64.StdEncoding.DecodeString(sealed.Resource.Ciphertext)
		if err != nil {
			return nil, err
		}
		if len(sealed.Resource.Nonce) != box.NonceSize() {
			return nil, errors.New("the nonce has another length")
		}
		resource, err := box.Open(nil, []byte(sealed.Resource.Nonce), ciphertext, []byte(sealed.Resource.AssociatedData))
		if err != nil {
			return nil, err
		}
		return json.Marshal(map[string]any{
			"id": sealed.ID, "event_type": sealed.EventType, "resource": json.RawMessage(resource),
		})
	}
}

func wechatBox() (cipher.AEAD, error) {
	block, err := aes.NewCipher([]byte(wechatKey))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

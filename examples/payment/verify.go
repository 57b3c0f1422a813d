package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
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
	wechatID       = "PUB_KEY_ID_17"
	alipayApp      = "2021000117650139"
)

const (
	stripeField = "Stripe-Signature"
	sdkField    = "X-Demo-Signature"
)

// must is for secrets that are right here.
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

// alipay is the verification of Alipay's form by the key that Alipay publishes.
func alipay(key string) callback.Verify { return must(callback.VerifyAlipay(alipayApp, key)) }

// wechat is the verification of WeChat Pay's notification, which is then opened.
func wechat(key string) callback.Verify {
	keys, err := callback.NewWeChatPayKeys(map[string]string{wechatID: key})
	if err != nil {
		panic(err)
	}
	return must(callback.OpenWeChatPay(must(callback.VerifyWeChatPay(keys)), wechatKey))
}

func wechatBox() (cipher.AEAD, error) {
	block, err := aes.NewCipher([]byte(wechatKey))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

package callback

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

const weChatPayCipher = "AEAD_AES_256_GCM"

// OpenWeChatPay returns a Verify that gives each notification of WeChat Pay API v3 to
// verify, such as that of [VerifyWeChatPay], and then decrypts its resource: that of a
// payment, a refund, a combined payment or anything else. The payload is the notification
// with the decrypted resource in place of the encrypted one, as [WeChatPay] expects it.
//
// There are two API v3 keys while one is being replaced. If none opens a notification that
// verify has proven, the error wraps [ErrCannotVerify]: OnError is told, and WeChat Pay sends
// it again, until you have corrected the key
// (https://pay.weixin.qq.com/doc/v3/merchant/4012071382).
//
// OpenWeChatPay returns an error if verify is nil, if there is no key, or if one has not the
// 32 bytes of an API v3 key. It joins all faults. The errors do not show a key.
func OpenWeChatPay(verify Verify, apiV3Keys ...string) (Verify, error) {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("callback.OpenWeChatPay: "+format, args...))
	}
	if verify == nil {
		fault("verify is nil: pass that of VerifyWeChatPay")
	}
	if len(apiV3Keys) == 0 {
		fault("no API v3 keys: pass the one that you have set in WeChat Pay's merchant platform")
	}
	boxes := make([]cipher.AEAD, len(apiV3Keys))
	for i, key := range apiV3Keys {
		if len(key) != 32 {
			fault("API v3 key %d has %d bytes: copy the 32 that you have set in WeChat Pay's merchant platform", i, len(key))
			continue
		}
		block, err := aes.NewCipher([]byte(key))
		if err == nil {
			boxes[i], err = cipher.NewGCM(block)
		}
		if err != nil {
			fault("API v3 key %d cannot be used", i)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return func(ctx context.Context, d *Delivery) ([]byte, error) {
		payload, err := verify(ctx, d)
		if err != nil {
			return nil, err
		}
		return opened(payload, boxes)
	}, nil
}

// opened returns a notification with its resource in the clear.
func opened(notification []byte, boxes []cipher.AEAD) ([]byte, error) {
	if err := valid(notification); err != nil {
		return nil, err
	}
	p := &picker{json: notification}
	if p.must(weChatPayAlgorithm) != weChatPayCipher {
		p.fault(weChatPayAlgorithm.String(), fmt.Errorf("it is not %s", weChatPayCipher))
	}
	sealed, err := base64.StdEncoding.DecodeString(p.must(weChatPayCiphertext))
	if err != nil {
		p.fault(weChatPayCiphertext.String(), errors.New("it is no base64"))
	}
	nonce, extra := p.must(weChatPayNonce), p.maybe(weChatPayExtra)
	if len(nonce) != boxes[0].NonceSize() { // Open would panic
		p.fault(weChatPayNonce.String(), fmt.Errorf("it has not %d bytes", boxes[0].NonceSize()))
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(notification, &members); err != nil {
		p.fault("the notification", err)
	}
	if p.err != nil {
		return nil, p.err
	}
	for _, box := range boxes {
		resource, err := box.Open(nil, []byte(nonce), sealed, []byte(extra))
		if err != nil {
			continue
		}
		if err := valid(resource); err != nil {
			return nil, err
		}
		members["resource"] = resource
		return json.Marshal(members)
	}
	return nil, fmt.Errorf("%w: no API v3 key opens the resource of a notification that WeChat Pay has signed: check the key", ErrCannotVerify)
}

var (
	weChatPayAlgorithm  = pointer("/resource/algorithm")
	weChatPayCiphertext = pointer("/resource/ciphertext")
	weChatPayNonce      = pointer("/resource/nonce")
	weChatPayExtra      = pointer("/resource/associated_data")
)

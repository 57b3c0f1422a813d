package callback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/neap-go/neap/core/internal/misuse"
)

// WeChatPayKeys are the keys that WeChat Pay signs with. They may be replaced while
// endpoints use them. It is safe for concurrent use. The zero WeChatPayKeys is not usable.
type WeChatPayKeys struct {
	keys    atomic.Pointer[map[string]providerKey] // by serial
	unknown atomic.Int64
	last    atomic.Pointer[string] // unknown serial
}

const publicKeyPrefix = "PUB_KEY_ID_" // in the serials of WeChat Pay's public keys

var errWeChatPayKeys = errors.New("callback: a nil or zero WeChatPayKeys: make one with NewWeChatPayKeys, and check its error first")

// NewWeChatPayKeys makes keys by serial, each in PEM: the platform certificate of a serial,
// or the public key of an id that begins with PUB_KEY_ID_. Pass both while WeChat Pay
// changes from the one to the other, which takes days: each delivery names the key that
// signed it (https://pay.weixin.qq.com/doc/v3/merchant/4012154180). The dates of a
// certificate are not looked at.
//
// NewWeChatPayKeys returns an error if there is no key, or if one is not of the kind of its
// serial, no certificate of that serial, or no RSA key of at least 2048 bits. It joins all
// faults.
func NewWeChatPayKeys(keys map[string]string) (*WeChatPayKeys, error) {
	known, err := readWeChatPayKeys(keys)
	if err != nil {
		return nil, fmt.Errorf("callback.NewWeChatPayKeys: %w", err)
	}
	k := &WeChatPayKeys{}
	k.keys.Store(&known)
	return k, nil
}

// Replace replaces all keys, as [NewWeChatPayKeys] makes them. If it returns an error, the
// keys are what they were. A delivery under way may still be verified by the old keys.
func (k *WeChatPayKeys) Replace(keys map[string]string) error {
	if k == nil || k.keys.Load() == nil {
		return errWeChatPayKeys
	}
	known, err := readWeChatPayKeys(keys)
	if err != nil {
		return fmt.Errorf("callback.WeChatPayKeys.Replace: %w", err)
	}
	k.keys.Store(&known)
	return nil
}

// Unknown returns how many deliveries named a serial that is not among the keys, and the
// last such serial, at most 64 bytes of it. OnError is not told of these deliveries. If the
// number grows while no events come, load the key of that serial. Anybody can send such a
// delivery, so a number alone proves nothing.
func (k *WeChatPayKeys) Unknown() (deliveries int64, last string) {
	misuse.Made(k != nil && k.keys.Load() != nil, errWeChatPayKeys)
	if serial := k.last.Load(); serial != nil {
		last = *serial
	}
	return k.unknown.Load(), last
}

func readWeChatPayKeys(keys map[string]string) (map[string]providerKey, error) {
	if len(keys) == 0 {
		return nil, errors.New("no keys: pass WeChat Pay's public key or platform certificate")
	}
	known := make(map[string]providerKey, len(keys))
	var faults []error
	for _, serial := range slices.Sorted(maps.Keys(keys)) {
		key, err := readKey(keys[serial])
		if err == nil {
			err = fits(serial, key)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("the key of %.80q %w", serial, err))
		}
		known[serial] = key
	}
	return known, errors.Join(faults...)
}

// fits returns nil if the key is of the kind that its serial says.
func fits(serial string, key providerKey) error {
	if strings.HasPrefix(serial, publicKeyPrefix) {
		if key.cert != nil {
			return errors.New("is a certificate: pass the public key, or name the certificate by its serial")
		}
		return nil
	}
	if key.cert == nil {
		return fmt.Errorf("is a public key: name it by its id, which begins with %s", publicKeyPrefix)
	}
	if own := fmt.Sprintf("%X", key.cert.SerialNumber.Bytes()); own != serial {
		return fmt.Errorf("is the certificate of %s: name it so", own)
	}
	return nil
}

// of returns the key of a serial.
func (k *WeChatPayKeys) of(serial string) (providerKey, error) {
	key, known := (*k.keys.Load())[serial]
	if !known {
		k.unknown.Add(1)
		serial = strings.Clone(serial[:min(len(serial), 64)])
		k.last.Store(&serial)
		return key, fmt.Errorf("%w: the key of its Wechatpay-Serial is not loaded", ErrNoAttack)
	}
	return key, nil
}

const (
	weChatPayMethod = "WECHATPAY2-SHA256-RSA2048"
	weChatPayProbe  = "WECHATPAY/SIGNTEST/"
)

// VerifyWeChatPay returns a Verify that proves a notification of WeChat Pay API v3 by the
// key of its Wechatpay-Serial. The signature is over Wechatpay-Timestamp, Wechatpay-Nonce
// and the body. A notification is refused if it is more than 5 minutes old, or more than 5
// minutes ahead of this clock, or if it is signed by another method than
// WECHATPAY2-SHA256-RSA2048 (https://pay.weixin.qq.com/doc/v3/merchant/4013053249).
//
// A false signature that WeChat Pay sends on purpose (WECHATPAY/SIGNTEST/…) and a serial that
// is not among the keys are refused like forgeries, and are no attack ([ErrNoAttack]).
// WeChatPayKeys.Unknown counts the latter.
//
// The payload is the body, whose resource is still encrypted: give the Verify to
// [OpenWeChatPay]. The Verify sends nothing.
//
// VerifyWeChatPay returns an error if keys is nil or zero.
func VerifyWeChatPay(keys *WeChatPayKeys) (Verify, error) {
	if keys == nil || keys.keys.Load() == nil {
		return nil, fmt.Errorf("callback.VerifyWeChatPay: keys: %w", errWeChatPayKeys)
	}
	return func(_ context.Context, d *Delivery) ([]byte, error) {
		signature, err := single(d, "Wechatpay-Signature")
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(signature, weChatPayProbe) {
			return nil, fmt.Errorf("%w: Wechatpay-Signature is false on purpose", ErrNoAttack)
		}
		for _, method := range d.Header.Values("Wechatpay-Signature-Type") { // it may be missing
			if method != weChatPayMethod {
				return nil, fmt.Errorf("Wechatpay-Signature-Type is %.40q, and only %s is proof", method, weChatPayMethod)
			}
		}
		serial, err1 := single(d, "Wechatpay-Serial")
		stamp, err2 := single(d, "Wechatpay-Timestamp")
		nonce, err3 := single(d, "Wechatpay-Nonce")
		if err := cmp.Or(err1, err2, err3); err != nil {
			return nil, err
		}
		if err := recent("Wechatpay-Timestamp", stamp); err != nil {
			return nil, err
		}
		if nonce == "" || strings.Contains(nonce, "\n") {
			return nil, errors.New("Wechatpay-Nonce is empty, or has a line break, which ends it in what is signed")
		}
		raw, err := exactBase64("Wechatpay-Signature", signature)
		if err != nil {
			return nil, err
		}
		key, err := keys.of(serial)
		if err != nil {
			return nil, err
		}
		return d.Body, key.proves(slices.Concat([]byte(stamp+"\n"+nonce+"\n"), d.Body, []byte("\n")), raw)
	}, nil
}

package usecases

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/neap-go/neap/core/callback"
)

// AlipayVerify lets an SDK check the form's signature. serials are those of the
// certificates that you have loaded into the SDK: none where you have loaded
// Alipay's public key.
func AlipayVerify(verifySign func(context.Context, url.Values) error, serials ...string) callback.Verify {
	return func(ctx context.Context, d *callback.Delivery) ([]byte, error) {
		form, err := url.ParseQuery(string(d.Body))
		if err != nil {
			return nil, err
		}
		for _, serial := range form["alipay_cert_sn"] { // which is not signed
			if !slices.Contains(serials, serial) {
				return nil, errors.New("the certificate is not one that is loaded")
			}
		}
		return d.Body, verifySign(ctx, form)
	}
}

// AlipaySerial is what Alipay calls a certificate in alipay_cert_sn.
func AlipaySerial(cert *x509.Certificate) string {
	sum := md5.Sum([]byte(cert.Issuer.String() + cert.SerialNumber.String()))
	return hex.EncodeToString(sum[:])
}

// Notification is what WeChat Pay's SDK makes of a request.
type Notification struct {
	ID, EventType string
	Resource      struct{ Plaintext string }
}

// WeChatVerify lets an SDK check the signature and open the resource.
func WeChatVerify(parse func(*http.Request) (*Notification, error)) callback.Verify {
	return func(ctx context.Context, d *callback.Delivery) ([]byte, error) {
		r, err := http.NewRequestWithContext(ctx, d.Method, d.Path, bytes.NewReader(d.Body))
		if err != nil {
			return nil, err
		}
		r.Header = d.Header.Clone()
		n, err := parse(r)
		if err != nil {
			return nil, err
		}
		return json.Marshal(map[string]any{
			"id": n.ID, "event_type": n.EventType, "resource": json.RawMessage(n.Resource.Plaintext),
		})
	}
}

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

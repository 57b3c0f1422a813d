package callback

import (
	"context"
	"crypto/md5" //nolint:gosec // Alipay names a certificate by its MD5
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"
)

// These fields of Alipay's form are about its signature.
const (
	alipaySign    = "sign"
	alipayKind    = "sign_type"
	alipaySerial  = "alipay_cert_sn"
	alipayApp     = "app_id"
	alipayCharset = "charset"
)

// VerifyAlipay returns a Verify that proves an asynchronous notification of Alipay's open
// platform, a form in the body, by one of the keys. A key is Alipay's certificate for your
// app (alipayCertPublicKey_RSA2.crt, as it is), or Alipay's public key in PEM or in the
// base64 that the console shows. Pass the next key before Alipay signs with it. The dates
// of a certificate are not looked at.
//
// appID is the app that the notification has to be about. Alipay may sign for several apps
// with one key, so the signature alone does not say to whom the payment was made.
//
// The signature is over the decoded bytes of all fields but sign, sign_type and
// alipay_cert_sn. That of a life account is over sign_type too. alipay_cert_sn is not signed:
// it only selects one of the certificates that you passed, and none is fetched. No signed
// field says when the delivery was sent (https://opendocs.alipay.com/common/02mse7).
//
// The payload is a form with the signed fields alone, in UTF-8. A form in GBK or GB2312 is
// converted after it was proven, and its charset becomes utf-8.
//
// The Verify refuses another sign_type than RSA2, in particular RSA, which is SHA-1, and
// another app_id. A signed form is malformed ([ErrMalformed]) if it has a field twice,
// another charset, text that is none of its charset, or a text with &app_id=, &charset= or
// &sign_type= in it, which could be taken for a field.
//
// VerifyAlipay returns an error if appID is no number, if there is no key, or if one is no
// RSA key of at least 2048 bits or an authority's. It joins all faults. The Verify sends
// nothing.
func VerifyAlipay(appID string, keys ...string) (Verify, error) {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("callback.VerifyAlipay: "+format, args...))
	}
	if strings.Trim(appID, "0123456789") != "" || appID == "" {
		fault("appID is %.80q: use the app's number from Alipay's console", appID)
	}
	if len(keys) == 0 {
		fault("no keys: pass Alipay's certificate or public key")
	}
	known := make([]alipayKey, len(keys))
	for i, text := range keys {
		k, err := readKey(text)
		if err != nil {
			fault("key %d %w", i, err)
			continue
		}
		known[i] = alipayKey{providerKey: k}
		if c := k.cert; c != nil {
			sum := md5.Sum([]byte(c.Issuer.String() + c.SerialNumber.String())) //nolint:gosec // as above
			known[i].serial = hex.EncodeToString(sum[:])
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return func(_ context.Context, d *Delivery) ([]byte, error) {
		form, err := url.ParseQuery(string(d.Body))
		if err != nil {
			return nil, errors.New("the body is not a form")
		}
		if err := alipayProven(form, known); err != nil {
			return nil, err
		}
		p := &picker{form: form}
		// If a text could hold a sign_type, one signature would be with it and without it.
		if p.apart(alipayApp, alipayCharset, alipayKind); p.err != nil {
			return nil, p.err
		}
		if form.Get(alipayApp) != appID {
			return nil, fmt.Errorf("%s is another app's", alipayApp)
		}
		return alipayInUTF8(form)
	}, nil
}

// alipayKey is one of Alipay's keys. serial is "" if it was not read from a certificate.
type alipayKey struct {
	providerKey

	serial string
}

// alipayProven returns nil if one of the keys has signed the first value of each field.
func alipayProven(form url.Values, keys []alipayKey) error {
	if kind := form.Get(alipayKind); kind != "RSA2" {
		return fmt.Errorf("%s is %.20q, and only RSA2 is proof: set the app to RSA2 in Alipay's console", alipayKind, kind)
	}
	signature, err := exactBase64(alipaySign, form.Get(alipaySign))
	if err != nil {
		return err
	}
	texts := [][]byte{
		alipaySigned(form, alipaySign, alipaySerial, alipayKind),
		alipaySigned(form, alipaySign, alipaySerial), // of a life account
	}
	err = fmt.Errorf("%s is not that of a certificate that was loaded", alipaySerial)
	for _, key := range keys {
		if form.Has(alipaySerial) && (key.serial == "" || form.Get(alipaySerial) != key.serial) {
			continue
		}
		for _, text := range texts {
			if err = key.proves(text, signature); err == nil {
				return nil
			}
		}
	}
	return err
}

// alipaySigned returns the text that Alipay signs: the decoded fields, by name.
func alipaySigned(form url.Values, without ...string) (text []byte) {
	for _, name := range slices.Sorted(maps.Keys(form)) {
		if slices.Contains(without, name) {
			continue
		}
		if text != nil {
			text = append(text, '&')
		}
		text = append(text, name+"="+form.Get(name)...)
	}
	return text
}

// alipayInUTF8 returns the signed fields of a form in UTF-8.
func alipayInUTF8(form url.Values) ([]byte, error) {
	charset := form.Get(alipayCharset)
	decode := alipayCharsets[strings.ToLower(charset)]
	if decode == nil {
		return nil, malformed(fmt.Sprintf("%s is %.20q, which is none of Alipay's", alipayCharset, charset))
	}
	proven := url.Values{}
	for name, values := range form {
		text, err := decode(values[0])
		if err != nil || !utf8.ValidString(name+text) {
			return nil, malformed(short(name) + " is no text of the form's " + alipayCharset)
		}
		proven.Set(name, text)
	}
	for _, name := range []string{alipaySign, alipaySerial, alipayKind} {
		proven.Del(name)
	}
	proven.Set(alipayCharset, "utf-8")
	return []byte(proven.Encode()), nil
}

// alipayCharsets are Alipay's charsets, by their names in lower case. GB2312 is a part of
// GBK.
var alipayCharsets = map[string]func(string) (string, error){
	"utf-8":  func(text string) (string, error) { return text, nil },
	"gbk":    fromGBK,
	"gb2312": fromGBK,
}

func fromGBK(text string) (string, error) {
	decoded, err := simplifiedchinese.GBK.NewDecoder().String(text)
	if strings.ContainsRune(decoded, utf8.RuneError) { // in place of bytes that are no text
		return "", errors.New("not GBK")
	}
	return decoded, err
}

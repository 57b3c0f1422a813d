package callback_test

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/nethttp"
)

const (
	weChatNow   = 1_700_000_000
	weChatID    = "PUB_KEY_ID_0114232134912410000000000000"
	weChatV3Key = "an API v3 key has 32 bytes......"
	weChatPaid  = `{"mchid":"m1","out_trade_no":"o1","trade_state":"SUCCESS","amount":{"total":990,"currency":"CNY"}}`
)

// weChatKeys are keys with a public key and a certificate of the first signer.
func weChatKeys(t testing.TB) *callback.WeChatPayKeys {
	t.Helper()
	s := signers()[0]
	keys, err := callback.NewWeChatPayKeys(map[string]string{weChatID: s.public, s.serial: s.certificate})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func verifyWeChat(t testing.TB, keys *callback.WeChatPayKeys) callback.Verify {
	t.Helper()
	v, err := callback.VerifyWeChatPay(keys)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// weChatBy is a delivery that WeChat Pay has signed at a second.
func weChatBy(s *signer, serial string, second int64, body string) *callback.Delivery {
	stamp := fmt.Sprint(second)
	return signedDelivery(body, "Wechatpay-Serial", serial, "Wechatpay-Timestamp", stamp, "Wechatpay-Nonce", "nonce17",
		"Wechatpay-Signature", s.sign(crypto.SHA256, []byte(stamp+"\nnonce17\n"+body+"\n")))
}

// having is a delivery with another header field. An empty value takes the field away.
func having(d *callback.Delivery, name string, values ...string) *callback.Delivery {
	changed := *d
	changed.Header = d.Header.Clone()
	changed.Header.Del(name)
	for _, value := range values {
		changed.Header.Add(name, value)
	}
	return &changed
}

// sealed is a notification with an encrypted resource.
func sealed(key, kind, resource string) string {
	block, err := aes.NewCipher([]byte(key))
	if err != nil {
		panic(err)
	}
	box, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	text := base64.StdEncoding.EncodeToString(box.Seal(nil, []byte("123456789012"), []byte(resource), []byte("transaction")))
	return fmt.Sprintf(`{"id":"w1","create_time":"2026-01-02T16:18:21+08:00","resource_type":"encrypt-resource","event_type":%q,"summary":"`+chinese+`",`+
		`"resource":{"original_type":"transaction","algorithm":"AEAD_AES_256_GCM","ciphertext":%q,"associated_data":"transaction","nonce":"123456789012"}}`, kind, text)
}

func TestWeChatPaySignature(t *testing.T) {
	t.Parallel()
	s, stranger := signers()[0], signers()[1]
	const body = `{"id":"w1"}`
	at(t, weChatNow, func(t *testing.T) {
		v := verifyWeChat(t, weChatKeys(t))
		good := weChatBy(s, weChatID, weChatNow, body)
		signature := good.Header.Get("Wechatpay-Signature")
		other := *good
		other.Body = []byte(body + " ")
		split := weChatBy(s, weChatID, weChatNow, "17\n"+body)
		split.Header.Set("Wechatpay-Nonce", "nonce17\n17")
		split.Body = []byte(body)
		for name, c := range map[string]struct {
			d        *callback.Delivery
			proven   bool
			noAttack bool
		}{
			"a public key":        {d: good, proven: true},
			"a certificate":       {d: weChatBy(s, s.serial, weChatNow, body), proven: true},
			"its method":          {d: having(good, "Wechatpay-Signature-Type", "WECHATPAY2-SHA256-RSA2048"), proven: true},
			"another method":      {d: having(good, "Wechatpay-Signature-Type", "WECHATPAY2-SM2-WITH-SM3")},
			"two methods":         {d: having(good, "Wechatpay-Signature-Type", "WECHATPAY2-SHA256-RSA2048", "")},
			"5 minutes old":       {d: weChatBy(s, weChatID, weChatNow-300, body), proven: true},
			"older":               {d: weChatBy(s, weChatID, weChatNow-301, body)},
			"5 minutes ahead":     {d: weChatBy(s, weChatID, weChatNow+300, body), proven: true},
			"more ahead":          {d: weChatBy(s, weChatID, weChatNow+301, body)},
			"another time":        {d: having(good, "Wechatpay-Timestamp", fmt.Sprint(weChatNow+1))},
			"no time":             {d: having(good, "Wechatpay-Timestamp")},
			"no number":           {d: having(good, "Wechatpay-Timestamp", "now")},
			"another nonce":       {d: having(good, "Wechatpay-Nonce", "nonce18")},
			"no nonce":            {d: having(good, "Wechatpay-Nonce")},
			"two nonces":          {d: having(good, "Wechatpay-Nonce", "nonce17", "nonce17")},
			"a nonce with a body": {d: split},
			"another body":        {d: &other},
			"a stranger":          {d: weChatBy(stranger, weChatID, weChatNow, body)},
			"no signature":        {d: having(good, "Wechatpay-Signature")},
			"no base64":           {d: having(good, "Wechatpay-Signature", signature+"=")},
			"two signatures":      {d: having(good, "Wechatpay-Signature", signature, signature)},
			"RSA-PSS":             {d: having(good, "Wechatpay-Signature", s.pss([]byte(fmt.Sprintf("%d\nnonce17\n%s\n", weChatNow, body))))},
			"no serial":           {d: having(good, "Wechatpay-Serial")},
			"a false signature":   {d: having(good, "Wechatpay-Signature", "WECHATPAY/SIGNTEST/"+signature), noAttack: true},
			"an unknown serial":   {d: weChatBy(s, weChatID+"1", weChatNow, body), noAttack: true},
			"another case":        {d: weChatBy(s, strings.ToLower(s.serial), weChatNow, body), noAttack: true},
		} {
			payload, err := v(t.Context(), c.d)
			if (err == nil) != c.proven || err == nil && string(payload) != body || errors.Is(err, callback.ErrNoAttack) != c.noAttack {
				t.Errorf("%s: got %q, %v, want it proven (%t), or no attack (%t), or refused", name, payload, err, c.proven, c.noAttack)
			}
		}
	})
}

// TestWeChatPayVector: openssl dgst -sha256 -sign has made the signature.
func TestWeChatPayVector(t *testing.T) {
	t.Parallel()
	const body = `{"id":"1","event_type":"TRANSACTION.SUCCESS","resource":{"algorithm":"AEAD_AES_256_GCM","ciphertext":"AA==","nonce":"123456789012"}}`
	const signature = "nzZzG73LwObBkZ02rqFyjKptAD8og8Ehu6XXY0ux98pXBNtX84fdsQQd0mOPXHQyxTq4J6WVxwbh9mskHQr4lQhAbhzET0N9yV9kyGQ5LG3hRcOQuK9S9PKbp8aOw5xOQF16UXmlnz7dm4omQ8txaAxHsF7sn2S9sZYyb2XdLd2fVXN9NzxKuwE9KsZ2QUNRKJr82HY32Z+UZBwlWZnheTFw72xj1VH65euUoDLDawNwp4JrcwsxL8g0RJUWA5cFz46RruAf6IxdheoSrU0CcDhJYHkjElJZ+JwaVZj1IrVgjuk3KD+jMN+7tCr3h5z3/jFDTQtkFhYDuRk4wndBew=="
	keys, err := callback.NewWeChatPayKeys(map[string]string{weChatID: vectorKey})
	if err != nil {
		t.Fatal(err)
	}
	at(t, weChatNow, func(t *testing.T) {
		d := signedDelivery(body, "Wechatpay-Serial", weChatID, "Wechatpay-Timestamp", "1700000000", "Wechatpay-Nonce", "nonce17", "Wechatpay-Signature", signature)
		if !verified(t, verifyWeChat(t, keys), d) {
			t.Error("got it refused, want it proven")
		}
	})
}

// TestWeChatPayAltered: of a thousand altered deliveries none is proven.
func TestWeChatPayAltered(t *testing.T) {
	t.Parallel()
	r, s := redistest.Rand(t), signers()[0]
	body := sealed(weChatV3Key, "TRANSACTION.SUCCESS", weChatPaid)
	at(t, weChatNow, func(t *testing.T) {
		v := verifyWeChat(t, weChatKeys(t))
		good := weChatBy(s, weChatID, weChatNow, body)
		for range 1000 {
			d := alteredWeChat(r, good)
			if _, err := v(t.Context(), d); err == nil {
				t.Errorf("%v %s: got it proven, want it refused", d.Header, d.Body)
			}
		}
	})
}

// alteredWeChat is a delivery with one byte more, less or other.
func alteredWeChat(r *rand.Rand, good *callback.Delivery) *callback.Delivery {
	fields := []string{"", "Wechatpay-Serial", "Wechatpay-Timestamp", "Wechatpay-Nonce", "Wechatpay-Signature"}
	field := fields[r.IntN(len(fields))]
	text := good.Header.Get(field)
	if field == "" {
		text = string(good.Body)
	}
	at := r.IntN(len(text))
	switch r.IntN(3) {
	case 0:
		text = text[:at] + text[at+1:]
	case 1:
		text = text[:at] + string(text[at]^byte(1+r.IntN(127))) + text[at+1:]
	default:
		text = text[:at] + string(byte(' '+r.IntN(90))) + text[at:]
	}
	if field == "" {
		d := *good
		d.Body = []byte(text)
		return &d
	}
	return having(good, field, text)
}

// TestWeChatPayKeysAreReplaced while deliveries are verified: each key is known from the
// moment that Replace has returned, and the keys stay as they were if it fails.
func TestWeChatPayKeysAreReplaced(t *testing.T) {
	t.Parallel()
	s, next := signers()[0], signers()[1]
	at(t, weChatNow, func(t *testing.T) {
		keys := weChatKeys(t)
		v := verifyWeChat(t, keys)
		old, fresh := weChatBy(s, weChatID, weChatNow, "{}"), weChatBy(next, next.serial, weChatNow, "{}")
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 50 {
					if _, err := v(t.Context(), fresh); err != nil && !errors.Is(err, callback.ErrNoAttack) {
						t.Errorf("the next key: got %v, want it proven or no attack", err)
					}
				}
			})
		}
		if err := keys.Replace(map[string]string{next.serial: s.certificate}); err == nil || !verified(t, v, old) {
			t.Errorf("a Replace that fails: got %v, want an error, and the old keys", err)
		}
		both := map[string]string{weChatID: s.public, next.serial: next.certificate}
		if err := keys.Replace(both); err != nil || !verified(t, v, old) || !verified(t, v, fresh) {
			t.Errorf("both keys: got %v or a refusal, want both proven", err)
		}
		wg.Wait()
		before, _ := keys.Unknown()
		if err := keys.Replace(map[string]string{next.serial: next.certificate}); err != nil || verified(t, v, old) || !verified(t, v, fresh) {
			t.Errorf("the next key: got %v or another result, want it alone proven", err)
		}
		if n, last := keys.Unknown(); n != before+1 || last != weChatID {
			t.Errorf("got %d deliveries with an unknown serial, %q, want %d, %q", n, last, before+1, weChatID)
		}
		long := strings.Repeat("x", 1000)
		_, _ = v(t.Context(), having(old, "Wechatpay-Serial", long))
		if _, last := keys.Unknown(); last != long[:64] {
			t.Errorf("got the serial %q, want 64 bytes of it", last)
		}
	})
}

func TestWeChatPayKeysAreChecked(t *testing.T) {
	t.Parallel()
	s := signers()[0]
	short := certified(s.private, &x509.Certificate{SerialNumber: big.NewInt(0xF)})
	for _, c := range []struct {
		keys map[string]string
		want []string
	}{
		{nil, []string{"no keys"}},
		{map[string]string{weChatID: s.certificate}, []string{weChatID + `" is a certificate`}},
		{map[string]string{s.serial: s.public}, []string{"is a public key", "PUB_KEY_ID_"}},
		{map[string]string{"1": s.certificate}, []string{"is the certificate of " + s.serial}},
		{map[string]string{strings.ToLower(s.serial): s.certificate}, []string{"is the certificate of " + s.serial}},
		{map[string]string{"0F": short}, nil},
		{map[string]string{"1": "", weChatID: "x", s.serial: s.certificate}, []string{`"1" is neither`, weChatID + `" is neither`}},
	} {
		_, err := callback.NewWeChatPayKeys(c.keys)
		if (err == nil) != (c.want == nil) {
			t.Errorf("%v: got %v, want %q", c.keys, err, c.want)
		}
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "callback.NewWeChatPayKeys: ") {
				t.Errorf("%v: got %v, want %q", c.keys, err, want)
			}
		}
	}
	for _, keys := range []*callback.WeChatPayKeys{nil, {}} {
		if _, err := callback.VerifyWeChatPay(keys); err == nil || !strings.Contains(err.Error(), "NewWeChatPayKeys") {
			t.Errorf("got %v, want an error that names the constructor", err)
		}
	}
}

// TestOpenWeChatPay: payments, refunds and combined payments are known by what was
// encrypted.
func TestOpenWeChatPay(t *testing.T) {
	t.Parallel()
	plain := func(body string) (callback.Item, error) {
		open, err := callback.OpenWeChatPay(demoVerify, "the next API v3 key of 32 bytes.", weChatV3Key)
		if err != nil {
			t.Fatal(err)
		}
		payload, err := open(t.Context(), signedDelivery(body, signature, "ok"))
		if err != nil {
			return callback.Item{}, err
		}
		return itemOf(t, callback.WeChatPay(), nil, string(payload)), nil
	}
	for _, c := range []struct{ kind, resource, transition, order string }{
		{"TRANSACTION.SUCCESS", weChatPaid, "TRANSACTION.SUCCESS/m1/o1/", "o1"},
		{"REFUND.SUCCESS", `{"mchid":"m1","out_trade_no":"o1","out_refund_no":"r1","refund_status":"SUCCESS"}`, "REFUND.SUCCESS/m1/o1/r1", "o1"},
		{"TRANSACTION.SUCCESS", `{"combine_mchid":"m1","combine_out_trade_no":"o1","sub_orders":[{"mchid":"m2","out_trade_no":"o2"}]}`, "TRANSACTION.SUCCESS/m1/o1//combined", "o1"},
		{"REFUND.SUCCESS", `{"combine_out_trade_no":"c1","mchid":"m1","out_trade_no":"o1","out_refund_no":"r1"}`, "REFUND.SUCCESS/m1/o1/r1", "o1"},
	} {
		item, err := plain(sealed(weChatV3Key, c.kind, c.resource))
		if err != nil || item.Transition != c.transition || item.Order != c.order || item.DeliveryID != "w1" {
			t.Errorf("%s: got %+v, %v, want %q of %q", c.resource, item, err, c.transition, c.order)
		}
		var got struct {
			CreateTime string          `json:"create_time"`
			Resource   json.RawMessage `json:"resource"`
		}
		if err := json.Unmarshal(item.Payload, &got); err != nil || string(got.Resource) != c.resource || got.CreateTime == "" {
			t.Errorf("got %s, %v, want the other members, and the resource %s", item.Payload, err, c.resource)
		}
	}
	good := sealed(weChatV3Key, "TRANSACTION.SUCCESS", weChatPaid)
	for body, want := range map[string]error{
		sealed("another API v3 key of 32 bytes..", "T", weChatPaid):                               callback.ErrCannotVerify,
		strings.Replace(good, `"associated_data":"transaction"`, `"associated_data":"refund"`, 1): callback.ErrCannotVerify,
		strings.Replace(good, "AEAD_AES_256_GCM", "AEAD_SM4_GCM", 1):                              callback.ErrMalformed,
		strings.Replace(good, `"nonce":"123456789012"`, `"nonce":"12345678901"`, 1):               callback.ErrMalformed,
		strings.Replace(good, `"nonce":"123456789012"`, `"other":1`, 1):                           callback.ErrMalformed,
		strings.Replace(good, `"ciphertext":"`, `"ciphertext":"?`, 1):                             callback.ErrMalformed,
		strings.Replace(good, `"resource":{`, `"resource":{},"Resource":{`, 1):                    callback.ErrMalformed,
		sealed(weChatV3Key, "T", `{"mchid":`):                                                     callback.ErrMalformed,
		`{"resource":null}`:                                                                       callback.ErrMalformed, "[]": callback.ErrMalformed, "": callback.ErrMalformed, "{": callback.ErrMalformed,
	} {
		if item, err := plain(body); !errors.Is(err, want) {
			t.Errorf("%.300s: got %+v, %v, want %v", body, item, err, want)
		}
	}
	refuses, err := callback.OpenWeChatPay(demoVerify, weChatV3Key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := refuses(t.Context(), signedDelivery(good)); !errors.Is(err, errUnsigned) {
		t.Errorf("without a signature: got %v, want %v", err, errUnsigned)
	}
}

func TestOpenWeChatPayArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		verify callback.Verify
		keys   []string
		want   []string
	}{
		{nil, nil, []string{"verify is nil", "no API v3 keys"}},
		{demoVerify, []string{weChatV3Key, weChatV3Key + "\n", ""}, []string{"key 1 has 33 bytes", "key 2 has 0 bytes"}},
	} {
		_, err := callback.OpenWeChatPay(c.verify, c.keys...)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), "callback.OpenWeChatPay: ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), weChatV3Key) {
				t.Errorf("got %v, want %q, without a key", err, want)
			}
		}
	}
}

// TestWeChatPayEndpoint: what is to be expected is refused, and the hook is not told.
func TestWeChatPayEndpoint(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	s, sh, p := signers()[0], &shop{}, callback.WeChatPay()
	keys := weChatKeys(t)
	open, err := callback.OpenWeChatPay(verifyWeChat(t, keys), weChatV3Key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := callback.New(p, guard(t, srv.Client(t), srv.Prefix(t), idempotency.Options{}), open, sh.book, &callback.Options{OnError: sh.hear})
	if err != nil {
		t.Fatal(err)
	}
	send := func(d *callback.Delivery) response {
		var header []string
		for name, values := range d.Header {
			header = append(header, name, values[0])
		}
		return deliver(nethttp.Handler(made), string(d.Body), header...)
	}
	good := weChatBy(s, weChatID, time.Now().Unix(), sealed(weChatV3Key, "TRANSACTION.SUCCESS", weChatPaid))
	send(good).is(t, p.Done)
	send(weChatBy(s, s.serial, time.Now().Unix(), sealed(weChatV3Key, "TRANSACTION.SUCCESS", weChatPaid))).is(t, p.Done)
	sh.once(t, 1)
	refused := p.Refused
	refused.Status = http.StatusUnauthorized
	send(having(good, "Wechatpay-Signature", "WECHATPAY/SIGNTEST/x")).is(t, refused)
	send(weChatBy(s, "0123", time.Now().Unix(), "{}")).is(t, refused)
	if len(sh.told) != 0 {
		t.Errorf("the hook got %v, want nothing", sh.told)
	}
	if n, last := keys.Unknown(); n != 1 || last != "0123" {
		t.Errorf("got %d deliveries with an unknown serial, %q, want 1, \"0123\"", n, last)
	}
	send(having(good, "Wechatpay-Nonce", "x")).is(t, refused)
	if !sh.heard(callback.ErrUnverified) {
		t.Errorf("the hook got %v, want %v", sh.told, callback.ErrUnverified)
	}
	sh.told = nil
	send(weChatBy(s, weChatID, time.Now().Unix(), sealed("another API v3 key of 32 bytes..", "T", weChatPaid))).is(t, p.Later)
	if !sh.heard(callback.ErrCannotVerify) || sh.heard(callback.ErrUnverified) {
		t.Errorf("the hook got %v, want %v alone", sh.told, callback.ErrCannotVerify)
	}
}

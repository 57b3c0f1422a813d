package callback_test

import (
	"context"
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/nethttp"
)

// An app gets these from the consoles of Alipay and WeChat Pay.
const (
	appID    = "2021000117650139"
	keyID    = "PUB_KEY_ID_0114232134912410000000000000"
	apiV3Key = "an API v3 key has 32 bytes......"
)

// keyPair stands for that of Alipay and of WeChat Pay.
var keyPair = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		log.Fatal(err)
	}
	return key
})

// publicKey is what the consoles show of it.
func publicKey() string {
	der, err := x509.MarshalPKIXPublicKey(&keyPair().PublicKey)
	if err != nil {
		log.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func signedBy(key *rsa.PrivateKey, text string) string {
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		log.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(signature)
}

// fromAlipay signs a form as Alipay does.
func fromAlipay(form url.Values) url.Values {
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(form)) {
		fields = append(fields, name+"="+form.Get(name))
	}
	form.Set("sign", signedBy(keyPair(), strings.Join(fields, "&")))
	form.Set("sign_type", "RSA2")
	return form
}

// encryptedBy makes a notification with a resource as WeChat Pay encrypts it.
func encryptedBy(key, resource string) string {
	block, err := aes.NewCipher([]byte(key))
	if err != nil {
		log.Fatal(err)
	}
	box, err := cipher.NewGCM(block)
	if err != nil {
		log.Fatal(err)
	}
	text := base64.StdEncoding.EncodeToString(box.Seal(nil, []byte("123456789012"), []byte(resource), []byte("transaction")))
	return `{"id":"notice-17","event_type":"TRANSACTION.SUCCESS","resource":{"algorithm":"AEAD_AES_256_GCM","ciphertext":"` +
		text + `","nonce":"123456789012","associated_data":"transaction"}}`
}

// fromWeChatPay is the header of a notification as WeChat Pay signs it.
func fromWeChatPay(body string) http.Header {
	now := strconv.FormatInt(time.Now().Unix(), 10)
	return http.Header{
		"Wechatpay-Serial": {keyID}, "Wechatpay-Timestamp": {now}, "Wechatpay-Nonce": {"n17"},
		"Wechatpay-Signature": {signedBy(keyPair(), now+"\nn17\n"+body+"\n")},
	}
}

// arrive makes an endpoint, sends it a delivery, and prints the event that it finds and
// its answer.
func arrive(p callback.Preset, verify callback.Verify, body string, header http.Header) {
	rdb := redistest.Embedded() // stands for your go-redis client
	guard, err := idempotency.New(rdb, "callbacks", idempotency.Retry{}, &idempotency.Options{Retention: p.Retention, Budget: 5 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	book := func(_ context.Context, e *callback.Event) error {
		fmt.Println("order", e.Order, "key", e.Key)
		return nil // book it under a unique constraint on e.Key
	}
	endpoint, err := callback.New(p, guard, verify, book, nil)
	if err != nil {
		log.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/callbacks/"+p.Name, strings.NewReader(body))
	maps.Copy(r.Header, header)
	w := httptest.NewRecorder()
	nethttp.Handler(endpoint).ServeHTTP(w, r)
	fmt.Println(strings.TrimSpace(fmt.Sprint(w.Code, " ", w.Body)))
}

// Alipay wants the word success, and sends a form.
func ExampleAlipay() {
	verify, err := callback.VerifyAlipay(appID, publicKey())
	if err != nil {
		log.Fatal(err)
	}
	body := fromAlipay(url.Values{
		"app_id": {appID}, "charset": {"utf-8"}, "notify_id": {"notice-17"},
		"out_trade_no": {"order-17"}, "trade_status": {"TRADE_SUCCESS"},
	}).Encode()
	arrive(callback.Alipay(), verify, body, nil)
	arrive(callback.Alipay(), verify, strings.Replace(body, "order-17", "order-18", 1), nil)
	// Output:
	// order order-17 key alipay:notice-17
	// 200 success
	// 401 fail
}

// The payload is in UTF-8, whatever the charset of the form is.
func ExampleVerifyAlipay() {
	verify, err := callback.VerifyAlipay(appID, publicKey())
	if err != nil {
		log.Fatal(err)
	}
	form := fromAlipay(url.Values{"app_id": {appID}, "charset": {"GBK"}, "subject": {"\xb2\xe8"}})
	payload, err := verify(context.Background(), &callback.Delivery{Body: []byte(form.Encode())})
	if err != nil {
		log.Fatal(err)
	}
	proven, err := url.ParseQuery(string(payload))
	fmt.Println(proven.Get("subject"), err)

	form.Set("sign_type", "RSA")
	_, err = verify(context.Background(), &callback.Delivery{Body: []byte(form.Encode())})
	fmt.Println(err)
	// Output:
	// 茶 <nil>
	// sign_type is "RSA", and only RSA2 is proof: set the app to RSA2 in Alipay's console
}

// Verify returns the notification with its resource decrypted.
func ExampleWeChatPay() {
	keys, err := callback.NewWeChatPayKeys(map[string]string{keyID: publicKey()})
	if err != nil {
		log.Fatal(err)
	}
	verify, err := callback.VerifyWeChatPay(keys)
	if err != nil {
		log.Fatal(err)
	}
	verify, err = callback.OpenWeChatPay(verify, apiV3Key)
	if err != nil {
		log.Fatal(err)
	}
	body := encryptedBy(apiV3Key, `{"mchid": "1900000001", "out_trade_no": "order-17"}`)
	arrive(callback.WeChatPay(), verify, body, fromWeChatPay(body))
	// Output:
	// order order-17 key wechatpay:TRANSACTION.SUCCESS/1900000001/order-17/
	// 204
}

// What WeChat Pay signs falsely on purpose is refused, and is no attack.
func ExampleVerifyWeChatPay() {
	keys, err := callback.NewWeChatPayKeys(map[string]string{keyID: publicKey()})
	if err != nil {
		log.Fatal(err)
	}
	verify, err := callback.VerifyWeChatPay(keys)
	if err != nil {
		log.Fatal(err)
	}
	d := &callback.Delivery{Header: fromWeChatPay("{}"), Body: []byte("{}")}
	payload, err := verify(context.Background(), d)
	fmt.Println(string(payload), err)
	d.Header.Set("Wechatpay-Signature", "WECHATPAY/SIGNTEST/MTc=")
	_, err = verify(context.Background(), d)
	fmt.Println(err)
	// Output:
	// {} <nil>
	// callback: the delivery is not proven to be the provider's, and is no attack: Wechatpay-Signature is false on purpose
}

// A combined payment is one event.
func ExampleOpenWeChatPay() {
	verify := func(_ context.Context, d *callback.Delivery) ([]byte, error) { return d.Body, nil } // stands for that of VerifyWeChatPay
	verify, err := callback.OpenWeChatPay(verify, "the next API v3 key of 32 bytes.", apiV3Key)
	if err != nil {
		log.Fatal(err)
	}
	body := encryptedBy(apiV3Key, `{"combine_mchid": "1900000001", "combine_out_trade_no": "basket-17", "sub_orders": []}`)
	arrive(callback.WeChatPay(), verify, body, nil)
	// Output:
	// order basket-17 key wechatpay:TRANSACTION.SUCCESS/1900000001/basket-17//combined
	// 204
}

// A delivery is proven by the key that it names.
func ExampleNewWeChatPayKeys() {
	_, err := callback.NewWeChatPayKeys(map[string]string{"5157F09EFDC096DE15EBE81A47057A7232F1B8E1": publicKey()})
	fmt.Println(err)
	// Output: callback.NewWeChatPayKeys: the key of "5157F09EFDC096DE15EBE81A47057A7232F1B8E1" is a public key: name it by its id, which begins with PUB_KEY_ID_
}

// The keys are replaced while the endpoint runs.
func ExampleWeChatPayKeys_Replace() {
	keys, err := callback.NewWeChatPayKeys(map[string]string{keyID: publicKey()})
	if err != nil {
		log.Fatal(err)
	}
	verify, err := callback.VerifyWeChatPay(keys)
	if err != nil {
		log.Fatal(err)
	}
	d := &callback.Delivery{Header: fromWeChatPay("{}"), Body: []byte("{}")}
	d.Header.Set("Wechatpay-Serial", "PUB_KEY_ID_02")
	_, err = verify(context.Background(), d)
	fmt.Println(err != nil)
	fmt.Println(keys.Unknown())

	err = keys.Replace(map[string]string{keyID: publicKey(), "PUB_KEY_ID_02": publicKey()})
	fmt.Println(err)
	_, err = verify(context.Background(), d)
	fmt.Println(err)
	// Output:
	// true
	// 1 PUB_KEY_ID_02
	// <nil>
	// <nil>
}

package callback_test

import (
	"context"
	"crypto"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/neap-go/neap/core/callback"
)

// The certificate and the keys of an app come from the provider's console.
var (
	alipayCert      = signers()[0].certificate
	weChatPayPublic = signers()[0].public
)

// fromWeChatPay is the header of a notification as WeChat Pay signs it.
func fromWeChatPay(body string) http.Header {
	now := strconv.FormatInt(time.Now().Unix(), 10)
	return http.Header{
		"Wechatpay-Serial": {weChatID}, "Wechatpay-Timestamp": {now}, "Wechatpay-Nonce": {"n17"},
		"Wechatpay-Signature": {signers()[0].sign(crypto.SHA256, []byte(now+"\nn17\n"+body+"\n"))},
	}
}

// Alipay wants the word success, and sends a form.
func ExampleAlipay() {
	verify, err := callback.VerifyAlipay("2021000117650139", alipayCert)
	if err != nil {
		log.Fatal(err)
	}
	body := alipayBy(signers()[0], url.Values{
		"app_id": {"2021000117650139"}, "charset": {"utf-8"}, "notify_id": {"notice-17"},
		"out_trade_no": {"order-17"}, "trade_status": {"TRADE_SUCCESS"},
	}).Encode()
	receive(callback.Alipay(), verify, body, nil)
	receive(callback.Alipay(), verify, strings.Replace(body, "order-17", "order-18", 1), nil)
	// Output:
	// order order-17 key alipay:notice-17
	// 200 success
	// 401 fail
}

// The payload is in UTF-8, whatever the charset of the form is.
func ExampleVerifyAlipay() {
	verify, err := callback.VerifyAlipay("2021000117650139", alipayCert)
	if err != nil {
		log.Fatal(err)
	}
	form := alipayBy(signers()[0], url.Values{"app_id": {"2021000117650139"}, "charset": {"GBK"}, "subject": {"\xb2\xe8"}})
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
	keys, err := callback.NewWeChatPayKeys(map[string]string{weChatID: weChatPayPublic})
	if err != nil {
		log.Fatal(err)
	}
	verify, err := callback.VerifyWeChatPay(keys)
	if err != nil {
		log.Fatal(err)
	}
	verify, err = callback.OpenWeChatPay(verify, weChatV3Key)
	if err != nil {
		log.Fatal(err)
	}
	body := sealed(weChatV3Key, "TRANSACTION.SUCCESS", `{"mchid": "1900000001", "out_trade_no": "order-17"}`)
	receive(callback.WeChatPay(), verify, body, fromWeChatPay(body))
	// Output:
	// order order-17 key wechatpay:TRANSACTION.SUCCESS/1900000001/order-17/
	// 204
}

// What WeChat Pay signs falsely on purpose is refused, and is no attack.
func ExampleVerifyWeChatPay() {
	keys, err := callback.NewWeChatPayKeys(map[string]string{weChatID: weChatPayPublic})
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
	verify, err := callback.OpenWeChatPay(verify, "the next API v3 key of 32 bytes.", weChatV3Key)
	if err != nil {
		log.Fatal(err)
	}
	body := sealed(weChatV3Key, "TRANSACTION.SUCCESS", `{"combine_mchid": "1900000001", "combine_out_trade_no": "basket-17", "sub_orders": []}`)
	receive(callback.WeChatPay(), verify, body, nil)
	// Output:
	// order basket-17 key wechatpay:TRANSACTION.SUCCESS/1900000001/basket-17//combined
	// 204
}

// A delivery is proven by the key that it names.
func ExampleNewWeChatPayKeys() {
	_, err := callback.NewWeChatPayKeys(map[string]string{"5157F09EFDC096DE15EBE81A47057A7232F1B8E1": weChatPayPublic})
	fmt.Println(err)
	// Output: callback.NewWeChatPayKeys: the key of "5157F09EFDC096DE15EBE81A47057A7232F1B8E1" is a public key: name it by its id, which begins with PUB_KEY_ID_
}

// The keys are replaced while the endpoint runs.
func ExampleWeChatPayKeys_Replace() {
	keys, err := callback.NewWeChatPayKeys(map[string]string{weChatID: weChatPayPublic})
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

	err = keys.Replace(map[string]string{weChatID: weChatPayPublic, "PUB_KEY_ID_02": weChatPayPublic})
	fmt.Println(err)
	_, err = verify(context.Background(), d)
	fmt.Println(err)
	// Output:
	// true
	// 1 PUB_KEY_ID_02
	// <nil>
	// <nil>
}

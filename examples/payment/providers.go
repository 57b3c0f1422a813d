package main

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// provider sends events until they are acknowledged.
type provider struct {
	name, path string
	gaps       []time.Duration // between its deliveries
	currency   string
	// acknowledged is what it takes for an acknowledgement.
	acknowledged func(status int, body string) bool
	send         func(d delivery) (header http.Header, body string)
	// others are what it tells of beside payments and refunds, in its own words:
	// of an order each, of which nothing is to be booked.
	others []string
	// again are in which words it tells of a payment once more.
	again []string
}

// delivery is one of an event: the payment of an order, or a refund of some of it.
type delivery struct {
	order   string
	event   int    // 0 is the payment
	other   string // it is one of others or of again
	attempt int
	at      time.Time // by the simulator's clock
}

// amounts are of the payment and of two refunds.
var amounts = append([]int64{price}, refunds...)

func (d delivery) amount() int64 { return amounts[d.event] }

// pick is the payment's word, or a refund's.
func (d delivery) pick(payment, refund string) string {
	if d.event == 0 {
		return payment
	}
	return refund
}

// word is the payment's or a refund's, or that of another event.
func (d delivery) word(payment, refund string) string {
	return cmp.Or(d.other, d.pick(payment, refund))
}

// id is the same in all events of a payment or a refund.
func (d delivery) id(prefix string) string { return fmt.Sprintf("%s-%s-%d", prefix, d.order, d.event) }

// eventID is the same whenever the event is sent.
func (d delivery) eventID(prefix string) string { return d.id(prefix) + d.other }

// providers keep to what they publish of their schedules. Of what Stripe and PayPal
// do not publish, only that it takes three days is theirs.
func providers() []provider {
	const m, h = time.Minute, time.Hour
	ok := func(status int, _ string) bool { return status >= 200 && status < 300 }
	return []provider{
		{
			name: "Stripe", path: "stripe", gaps: gaps(72*h, 12*h, 5*m, 30*m, 2*h, 5*h, 10*h), currency: "EUR",
			acknowledged: ok, send: sendStripe, others: []string{"payment_intent.payment_failed"},
		},
		{
			name: "Alipay", path: "alipay", gaps: []time.Duration{4 * m, 10 * m, 10 * m, h, 2 * h, 6 * h, 15 * h}, currency: "CNY",
			acknowledged: func(_ int, body string) bool { return body == "success" }, send: sendAlipay,
			others: []string{"WAIT_BUYER_PAY", "TRADE_CLOSED"}, again: []string{"TRADE_FINISHED"},
		},
		{
			name: "WeChat Pay", path: "wechatpay", gaps: []time.Duration{
				15 * time.Second, 15 * time.Second, 30 * time.Second, 3 * m, 10 * m, 20 * m, 30 * m, 30 * m, 30 * m, h,
				3 * h, 3 * h, 3 * h, 6 * h, 6 * h,
			}, currency: "CNY",
			acknowledged: func(status int, _ string) bool { return status == 200 || status == 204 }, send: sendWeChat,
			others: []string{"REFUND.ABNORMAL"},
		},
		{
			name: "PayPal", path: "paypal", gaps: gaps(72*h, 72*h/25), currency: "EUR",
			acknowledged: ok, send: sendPayPal, others: []string{"PAYMENT.CAPTURE.DENIED"},
		},
		{
			name: "Adyen", path: "adyen", gaps: gaps(30*24*h, 8*h,
				9*time.Second, 9*time.Second, 9*time.Second, 2*m, 5*m, 10*m, 15*m, 30*m, h, 2*h, 4*h), currency: "EUR",
			acknowledged: ok, send: sendAdyen, others: []string{"AUTHORISATION", "CAPTURE_FAILED", overpaid},
		},
		{
			name: "Square", path: "square", gaps: gaps(24*h, h, m, 2*m, 4*m, 8*m, 16*m, 32*m), currency: "EUR",
			acknowledged: ok, send: sendSquare, others: []string{"FAILED"}, again: []string{"COMPLETED"},
		},
		{
			name: "GitHub", path: "github", gaps: []time.Duration{h, 23 * h, 47 * h}, currency: "USD", // by hand
			acknowledged: ok, send: sendGitHub, others: []string{"cancelled"},
		},
		{
			name: "Standard Webhooks", path: "webhooks-acme",
			gaps:     []time.Duration{5 * time.Second, 5 * m, 30 * m, 2 * h, 5 * h, 10 * h, 14 * h, 20 * h, 24 * h},
			currency: "EUR", acknowledged: ok, send: sendStandard, others: []string{"invoice.payment_failed"},
		},
	}
}

// overpaid is a payment of more than the order's price, which the shop rejects.
const overpaid = "overpaid"

// gaps begin with the first ones; one of the same length follows after the other
// for as long as is sent again.
func gaps(whole, then time.Duration, first ...time.Duration) []time.Duration {
	all := slices.Clone(first)
	for _, gap := range first {
		whole -= gap
	}
	for ; whole >= then; whole -= then {
		all = append(all, then)
	}
	return all
}

// now is the time of a signature: the shop looks at its own clock, which is not the
// simulator's.
func now() string { return strconv.FormatInt(time.Now().Unix(), 10) }

func stamped(secret, body string) string {
	stamp := now()
	return "t=" + stamp + ",v1=" + sum(secret, stamp+"."+body)
}

func sum(secret, text string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

func sdkHeader(body string) http.Header { return http.Header{sdkField: {stamped(sdkSecret, body)}} }

func sendStripe(d delivery) (http.Header, string) {
	status := "succeeded"
	if d.other != "" {
		status = "requires_payment_method"
	}
	body := fmt.Sprintf(`{"id":%q,"type":%q,"data":{"object":{"id":%q,"status":%q,"amount":%d,"currency":"eur","metadata":{"order":%q}}}}`,
		d.eventID("evt"), d.word("payment_intent.succeeded", "refund.created"), d.id(d.pick("pi", "re")), status, d.amount(), d.order)
	return http.Header{stripeField: {stamped(stripeSecret, body)}}, body
}

func sendAlipay(d delivery) (http.Header, string) {
	form := url.Values{
		"notify_id": {d.eventID("n")}, "notify_time": {d.at.Format(time.DateTime)}, "out_trade_no": {d.order},
		"trade_status": {d.word("TRADE_SUCCESS", "TRADE_SUCCESS")}, "total_amount": {decimal(price)}, "refund_fee": {"0.00"},
		"app_id": {alipayApp}, "charset": {"utf-8"},
	}
	if d.event > 0 {
		form.Set("gmt_refund", d.at.Format("2006-01-02 15:04:05.000"))
		form.Set("out_biz_no", d.id("r"))
		sum := int64(0)
		for _, n := range refunds[:d.event] {
			sum += n
		}
		form.Set("refund_fee", decimal(sum))
	}
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(form)) {
		fields = append(fields, name+"="+form.Get(name))
	}
	form.Set("sign", signed(strings.Join(fields, "&")))
	form.Set("sign_type", "RSA2")
	return http.Header{}, form.Encode()
}

func decimal(n int64) string { return fmt.Sprintf("%d.%02d", n/100, n%100) }

// sendWeChat makes another id for each attempt: that it stays is not documented.
func sendWeChat(d delivery) (http.Header, string) {
	resource := fmt.Sprintf(`{"out_trade_no":%q,"trade_state":"SUCCESS","amount":{"total":%d}}`, d.order, price)
	kind := d.word("TRANSACTION.SUCCESS", "REFUND.SUCCESS")
	if status, back := strings.CutPrefix(kind, "REFUND."); back {
		resource = fmt.Sprintf(`{"out_trade_no":%q,"out_refund_no":%q,"refund_status":%q,"amount":{"total":%d,"refund":%d}}`,
			d.order, d.id("r"), status, price, d.amount())
	}
	box, err := wechatBox()
	if err != nil {
		panic(err) // the key is a constant
	}
	nonce := rand.Text()[:box.NonceSize()]
	sealed := base64.StdEncoding.EncodeToString(box.Seal(nil, []byte(nonce), []byte(resource), []byte("transaction")))
	body := fmt.Sprintf(`{"id":%q,"event_type":%q,"resource":{"algorithm":"AEAD_AES_256_GCM","ciphertext":%q,"associated_data":"transaction","nonce":%q}}`,
		rand.Text(), kind, sealed, nonce)
	stamp := now()
	return http.Header{
		"Wechatpay-Serial": {wechatID}, "Wechatpay-Timestamp": {stamp}, "Wechatpay-Nonce": {nonce},
		"Wechatpay-Signature": {signed(stamp + "\n" + nonce + "\n" + body + "\n")},
	}, body
}

func sendPayPal(d delivery) (http.Header, string) {
	status := "COMPLETED"
	if d.other != "" {
		status = "DECLINED"
	}
	body := fmt.Sprintf(`{"id":%q,"event_type":%q,"resource":{"id":%q,"status":%q,"custom_id":%q,"amount":{"value":%q,"currency_code":"EUR"}}}`,
		d.eventID("WH"), d.word("PAYMENT.CAPTURE.COMPLETED", "PAYMENT.CAPTURE.REFUNDED"), d.id("c"), status, d.order, decimal(d.amount()))
	header := sdkHeader(body)
	header.Set("Paypal-Transmission-Id", rand.Text())
	header.Set("Paypal-Transmission-Time", d.at.Format(time.RFC3339))
	return header, body
}

// sendAdyen makes another eventDate for each attempt.
func sendAdyen(d delivery) (http.Header, string) {
	code, success, amount := d.word("AUTHORISATION", "REFUND"), "true", d.amount()
	switch d.other {
	case "AUTHORISATION":
		success = "false"
	case overpaid:
		code, amount = "AUTHORISATION", amount+1
	}
	body := fmt.Sprintf(`{"live":"false","notificationItems":[{"NotificationRequestItem":{"eventCode":%q,"eventDate":%q,"pspReference":%q,"success":%q,"merchantReference":%q,"amount":{"value":%d,"currency":"EUR"}}}]}`,
		code, d.at.Format(time.RFC3339), d.id("psp"), success, d.order, amount)
	return sdkHeader(body), body
}

func sendSquare(d delivery) (http.Header, string) {
	kind := d.pick("payment", "refund")
	of := fmt.Sprintf(`"reference_id":%q`, d.order)
	if d.event > 0 {
		of = fmt.Sprintf(`"payment_id":"payment-%s-0"`, d.order)
	}
	body := fmt.Sprintf(`{"event_id":%q,"type":"%s.updated","data":{"id":%q,"object":{%q:{"id":%q,"status":%q,%s,"amount_money":{"amount":%d,"currency":"EUR"}}}}}`,
		d.eventID("e"), kind, d.id(kind), kind, d.id(kind), d.word("COMPLETED", "COMPLETED"), of, d.amount())
	header := sdkHeader(body)
	header.Set("Square-Retry-Number", strconv.Itoa(d.attempt))
	return header, body
}

// sendGitHub makes another delivery id for each attempt, as who has captured a body
// could: the signature does not cover it.
func sendGitHub(d delivery) (http.Header, string) {
	tiers := []int64{price, price - refunds[0], price - refunds[0] - refunds[1]}
	changes := ""
	if d.event > 0 {
		changes = fmt.Sprintf(`,"changes":{"tier":{"from":{"monthly_price_in_cents":%d}}}`, tiers[d.event-1])
	}
	body := fmt.Sprintf(`{"action":%q,"sponsorship":{"node_id":%q,"tier":{"monthly_price_in_cents":%d}}%s}`,
		d.word("created", "tier_changed"), d.order, tiers[d.event], changes)
	return http.Header{
		"X-Github-Event": {"sponsorship"}, "X-Github-Delivery": {rand.Text()},
		"X-Hub-Signature-256": {"sha256=" + sum(githubSecret, body)},
	}, body
}

func sendStandard(d delivery) (http.Header, string) {
	body := fmt.Sprintf(`{"type":%q,"data":{"order":%q,"amount":%d,"currency":"EUR"}}`,
		d.word("invoice.paid", "invoice.refunded"), d.order, d.amount())
	key, err := standardwebhooks.NewWebhook(standardSecret)
	if err != nil {
		panic(err) // the secret is a constant
	}
	at, id := time.Now(), strings.ReplaceAll(d.eventID("msg"), ".", "-") // which has no full stop
	signature, err := key.Sign(id, at, []byte(body))
	if err != nil {
		panic(err)
	}
	header := http.Header{}
	header.Set(standardwebhooks.HeaderWebhookID, id)
	header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	return header, body
}

// forge takes off what proves a delivery.
func forge(header http.Header, body string) (http.Header, string) {
	forged := header.Clone()
	for name := range forged {
		if strings.Contains(name, "Signature") {
			forged.Set(name, "v1=00")
		}
	}
	return forged, strings.Replace(body, "&sign=", "&sign=00", 1)
}

package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
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
}

// delivery is one of an event: the payment of an order, or a refund of some of it.
type delivery struct {
	order   string
	event   int // 0 is the payment
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

// id is the same whenever the event is sent.
func (d delivery) id(prefix string) string { return fmt.Sprintf("%s-%s-%d", prefix, d.order, d.event) }

// providers keep to what they publish of their schedules. Of what Stripe and PayPal
// do not publish, only that it takes three days is theirs.
func providers() []provider {
	const m, h = time.Minute, time.Hour
	ok := func(status int, _ string) bool { return status >= 200 && status < 300 }
	return []provider{
		{"Stripe", "stripe", gaps(72*h, 12*h, 5*m, 30*m, 2*h, 5*h, 10*h), "EUR", ok, sendStripe},
		{
			"Alipay", "alipay", []time.Duration{4 * m, 10 * m, 10 * m, h, 2 * h, 6 * h, 15 * h}, "CNY",
			func(_ int, body string) bool { return body == "success" }, sendAlipay,
		},
		{
			"WeChat Pay", "wechatpay", []time.Duration{
				15 * time.Second, 15 * time.Second, 30 * time.Second, 3 * m, 10 * m, 20 * m, 30 * m, 30 * m, 30 * m, h,
				3 * h, 3 * h, 3 * h, 6 * h, 6 * h,
			}, "CNY",
			func(status int, _ string) bool { return status == 200 || status == 204 }, sendWeChat,
		},
		{"PayPal", "paypal", gaps(72*h, 72*h/25), "EUR", ok, sendPayPal},
		{"Adyen", "adyen", gaps(30*24*h, 8*h, 2*m, 5*m, 10*m, 15*m, 30*m, h, 2*h, 4*h), "EUR", ok, sendAdyen},
		{"Square", "square", gaps(24*h, h, m, 2*m, 4*m, 8*m, 16*m, 32*m), "EUR", ok, sendSquare},
		{"GitHub", "github", []time.Duration{h, 23 * h, 47 * h}, "EUR", ok, sendGitHub}, // by hand
		{
			"Standard Webhooks", "standard-webhooks",
			[]time.Duration{5 * time.Second, 5 * m, 30 * m, 2 * h, 5 * h, 10 * h, 14 * h, 20 * h, 24 * h}, "EUR", ok, sendStandard,
		},
	}
}

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
	body := fmt.Sprintf(`{"id":%q,"type":%q,"data":{"object":{"id":%q,"amount":%d,"currency":"eur","metadata":{"order":%q}}}}`,
		d.id("evt"), d.pick("payment_intent.succeeded", "refund.created"), d.id(d.pick("pi", "re")), d.amount(), d.order)
	return http.Header{stripeField: {stamped(stripeSecret, body)}}, body
}

func sendAlipay(d delivery) (http.Header, string) {
	form := url.Values{
		"notify_id": {d.id("n")}, "notify_time": {d.at.Format(time.DateTime)}, "out_trade_no": {d.order},
		"trade_status": {"TRADE_SUCCESS"}, "total_amount": {decimal(price)},
	}
	if d.event > 0 {
		form.Set("out_biz_no", d.id("r"))
		sum := int64(0)
		for _, n := range refunds[:d.event] {
			sum += n
		}
		form.Set("refund_fee", decimal(sum))
	}
	body := form.Encode()
	return sdkHeader(body), body
}

func decimal(n int64) string { return fmt.Sprintf("%d.%02d", n/100, n%100) }

// sendWeChat makes another id for each attempt: that it stays is not documented.
func sendWeChat(d delivery) (http.Header, string) {
	resource := fmt.Sprintf(`{"out_trade_no":%q,"amount":{"total":%d}}`, d.order, price)
	if d.event > 0 {
		resource = fmt.Sprintf(`{"out_trade_no":%q,"out_refund_no":%q,"amount":{"total":%d,"refund":%d}}`,
			d.order, d.id("r"), price, d.amount())
	}
	box, err := wechatBox()
	if err != nil {
		panic(err) // the key is a constant
	}
	nonce := rand.Text()[:box.NonceSize()]
	sealed := base64.StdEncoding.EncodeToString(box.Seal(nil, []byte(nonce), []byte(resource), []byte("transaction")))
	body := fmt.Sprintf(`{"id":%q,"event_type":%q,"resource":{"algorithm":"AEAD_AES_256_GCM","ciphertext":%q,"associated_data":"transaction","nonce":%q}}`,
		rand.Text(), d.pick("TRANSACTION.SUCCESS", "REFUND.SUCCESS"), sealed, nonce)
	return sdkHeader(body), body
}

func sendPayPal(d delivery) (http.Header, string) {
	body := fmt.Sprintf(`{"id":%q,"event_type":%q,"resource":{"id":%q,"custom_id":%q,"amount":{"value":%q,"currency_code":"EUR"}}}`,
		d.id("WH"), d.pick("PAYMENT.CAPTURE.COMPLETED", "PAYMENT.CAPTURE.REFUNDED"), d.id("c"), d.order, decimal(d.amount()))
	header := sdkHeader(body)
	header.Set("Paypal-Transmission-Id", rand.Text())
	header.Set("Paypal-Transmission-Time", d.at.Format(time.RFC3339))
	return header, body
}

// sendAdyen makes another eventDate for each attempt.
func sendAdyen(d delivery) (http.Header, string) {
	body := fmt.Sprintf(`{"live":"false","notificationItems":[{"NotificationRequestItem":{"eventCode":%q,"eventDate":%q,"pspReference":%q,"success":"true","merchantReference":%q,"amount":{"value":%d,"currency":"EUR"}}}]}`,
		d.pick("AUTHORISATION", "REFUND"), d.at.Format(time.RFC3339), d.id("psp"), d.order, d.amount())
	return sdkHeader(body), body
}

func sendSquare(d delivery) (http.Header, string) {
	kind := d.pick("payment", "refund")
	body := fmt.Sprintf(`{"event_id":%q,"type":"%s.updated","data":{"id":%q,"object":{%q:{"reference_id":%q,"amount_money":{"amount":%d,"currency":"EUR"}}}}}`,
		d.id("e"), kind, d.id(kind), kind, d.order, d.amount())
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
		d.pick("created", "tier_changed"), d.order, tiers[d.event], changes)
	return http.Header{
		"X-Github-Event": {"sponsorship"}, "X-Github-Delivery": {rand.Text()},
		"X-Hub-Signature-256": {"sha256=" + sum(githubSecret, body)},
	}, body
}

func sendStandard(d delivery) (http.Header, string) {
	body := fmt.Sprintf(`{"type":%q,"data":{"order":%q,"amount":%d,"currency":"EUR"}}`,
		d.pick("invoice.paid", "invoice.refunded"), d.order, d.amount())
	key, err := standardwebhooks.NewWebhook(standardSecret)
	if err != nil {
		panic(err) // the secret is a constant
	}
	at := time.Now()
	signature, err := key.Sign(d.id("msg"), at, []byte(body))
	if err != nil {
		panic(err)
	}
	header := http.Header{}
	header.Set(standardwebhooks.HeaderWebhookID, d.id("msg"))
	header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	return header, body
}

// forge takes off what proves a delivery.
func forge(header http.Header) http.Header {
	forged := header.Clone()
	for name := range forged {
		if strings.Contains(name, "Signature") {
			forged.Set(name, "v1=00")
		}
	}
	return forged
}

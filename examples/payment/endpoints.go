package main

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/neap-go/neap/core/callback"
)

// endpoint is how the shop receives one provider's events.
type endpoint struct {
	preset   callback.Preset
	verify   callback.Verify
	opts     callback.Options
	currency string // that the shop asks for
	// read names what is a payment or a refund, by its type and status. Of whatever
	// else the provider tells, or comes to tell, there is nothing to book.
	read func(*callback.Event) (entry, error)
}

// nothing is there to book.
var nothing entry

// endpoints are all of them. key is what Alipay and WeChat Pay publish of theirs.
func endpoints(key string) []endpoint {
	// A rejected item would have Adyen hold back all that comes after it.
	acknowledged := callback.Options{AckRejected: true}
	return []endpoint{
		{callback.Stripe(), must(callback.VerifyStripe(stripeSecret)), callback.Options{}, "EUR", readStripe},
		{callback.Alipay(), alipay(key), callback.Options{}, "CNY", readAlipay},
		{callback.WeChatPay(), wechat(key), callback.Options{}, "CNY", readWeChat},
		{callback.PayPal(), sdk(), callback.Options{}, "EUR", readPayPal},
		{callback.Adyen(), sdk(), acknowledged, "EUR", readAdyen},
		{callback.Square(), sdk(), callback.Options{}, "EUR", readSquare},
		{callback.GitHub(), must(callback.VerifyGitHub(githubSecret)), callback.Options{}, "USD", readGitHub},
		{callback.StandardWebhooks("acme"), must(callback.VerifyStandardWebhooks(standardSecret)), callback.Options{}, "EUR", readStandard},
	}
}

func readStripe(e *callback.Event) (entry, error) {
	var event struct {
		Type string `json:"type"`
		Data struct {
			Object struct {
				ID       string `json:"id"`
				Status   string `json:"status"`
				Amount   int64  `json:"amount"`
				Currency string `json:"currency"`
				Metadata struct {
					Order string `json:"order"`
				} `json:"metadata"`
			} `json:"object"`
		} `json:"data"`
	}
	if err := json.Unmarshal(e.Payload, &event); err != nil {
		return nothing, err
	}
	object := event.Data.Object
	switch event.Type + " " + object.Status {
	case "payment_intent.succeeded succeeded":
		return paid(object.ID, object.Metadata.Order, object.Amount, object.Currency), nil
	case "refund.created succeeded", "refund.updated succeeded": // the latter where it was pending
		return refunded(object.ID, object.Metadata.Order, object.Amount, object.Currency), nil
	}
	return nothing, nil
}

func readAlipay(e *callback.Event) (entry, error) {
	form, err := url.ParseQuery(string(e.Payload))
	if err != nil {
		return nothing, err
	}
	back := form.Get("gmt_refund") != "" // a refund_fee of 0.00 may stand where nothing is given back
	switch status := form.Get("trade_status"); {
	case back && (status == "TRADE_SUCCESS" || status == "TRADE_CLOSED"):
		number := form.Get("out_biz_no")
		n, err := refund(number) // refund_fee is the sum of all refunds so far
		return refunded(e.Order+"/"+number, e.Order, n, "CNY"), err
	case status == "TRADE_SUCCESS", status == "TRADE_FINISHED": // both of one order, months apart
		n, err := hundredths(form.Get("total_amount"))
		return paid(e.Order, e.Order, n, "CNY"), err
	}
	return nothing, nil
}

func readWeChat(e *callback.Event) (entry, error) {
	var event struct {
		Type     string `json:"event_type"`
		Resource struct {
			TradeState   string `json:"trade_state"`
			RefundStatus string `json:"refund_status"`
			Refund       string `json:"out_refund_no"`
			Amount       struct {
				Total  int64 `json:"total"`
				Refund int64 `json:"refund"`
			} `json:"amount"`
		} `json:"resource"`
	}
	if err := json.Unmarshal(e.Payload, &event); err != nil {
		return nothing, err
	}
	r := event.Resource
	switch {
	case event.Type == "TRANSACTION.SUCCESS" && r.TradeState == "SUCCESS":
		return paid(e.Order, e.Order, r.Amount.Total, "CNY"), nil
	case event.Type == "REFUND.SUCCESS" && r.RefundStatus == "SUCCESS":
		return refunded(r.Refund, e.Order, r.Amount.Refund, "CNY"), nil
	}
	return nothing, nil
}

func readPayPal(e *callback.Event) (entry, error) {
	var event struct {
		Type     string `json:"event_type"`
		Resource struct {
			ID     string `json:"id"`
			Status string `json:"status"`
			Order  string `json:"custom_id"`
			Amount struct {
				Value    string `json:"value"`
				Currency string `json:"currency_code"`
			} `json:"amount"`
		} `json:"resource"`
	}
	if err := json.Unmarshal(e.Payload, &event); err != nil {
		return nothing, err
	}
	book, r := paid, event.Resource
	switch event.Type + " " + r.Status {
	case "PAYMENT.CAPTURE.COMPLETED COMPLETED":
	case "PAYMENT.CAPTURE.REFUNDED COMPLETED":
		book = refunded
	default:
		return nothing, nil
	}
	n, err := hundredths(r.Amount.Value)
	return book(r.ID, r.Order, n, r.Amount.Currency), err
}

// readAdyen is for a shop whose payments are captured when they are authorised.
func readAdyen(e *callback.Event) (entry, error) {
	var item struct {
		EventCode string `json:"eventCode"`
		Success   string `json:"success"`
		Reference string `json:"pspReference"`
		Amount    struct {
			Value    int64  `json:"value"`
			Currency string `json:"currency"`
		} `json:"amount"`
	}
	if err := json.Unmarshal(e.Payload, &item); err != nil {
		return nothing, err
	}
	switch item.EventCode + " " + item.Success {
	case "AUTHORISATION true":
		return paid(item.Reference, e.Order, item.Amount.Value, item.Amount.Currency), nil
	case "REFUND true":
		return refunded(item.Reference, e.Order, item.Amount.Value, item.Amount.Currency), nil
	}
	return nothing, nil
}

func readSquare(e *callback.Event) (entry, error) {
	type object struct {
		ID      string `json:"id"`
		Status  string `json:"status"`
		Order   string `json:"reference_id"` // of a payment
		Payment string `json:"payment_id"`   // of a refund
		Money   struct {
			Amount   int64  `json:"amount"`
			Currency string `json:"currency"`
		} `json:"amount_money"`
	}
	var event struct {
		Type string `json:"type"`
		Data struct {
			Object struct {
				Payment object `json:"payment"`
				Refund  object `json:"refund"`
			} `json:"object"`
		} `json:"data"`
	}
	if err := json.Unmarshal(e.Payload, &event); err != nil {
		return nothing, err
	}
	const completed = "COMPLETED" // it is told of again when something else of it changes
	switch payment, refund := event.Data.Object.Payment, event.Data.Object.Refund; {
	case (event.Type == "payment.created" || event.Type == "payment.updated") && payment.Status == completed:
		return paid(payment.ID, payment.Order, payment.Money.Amount, payment.Money.Currency), nil
	case (event.Type == "refund.created" || event.Type == "refund.updated") && refund.Status == completed:
		return refunded(refund.ID, orderOf(refund.Payment), refund.Money.Amount, refund.Money.Currency), nil
	}
	return nothing, nil
}

// readGitHub books what a sponsor gives a month, and by how much less later on.
func readGitHub(e *callback.Event) (entry, error) {
	type tier struct {
		Cents int64 `json:"monthly_price_in_cents"`
	}
	var event struct {
		Action      string `json:"action"`
		Sponsorship struct {
			ID   string `json:"node_id"`
			Tier tier   `json:"tier"`
		} `json:"sponsorship"`
		Changes struct {
			Tier struct {
				From tier `json:"from"`
			} `json:"tier"`
		} `json:"changes"`
	}
	if err := json.Unmarshal(e.Payload, &event); err != nil {
		return nothing, err
	}
	s := event.Sponsorship
	if s.ID == "" { // an event of another kind: many have the same actions
		return nothing, nil
	}
	switch event.Action {
	case "created":
		return paid(s.ID, s.ID, s.Tier.Cents, "USD"), nil
	case "tier_changed":
		return refunded(e.Key, s.ID, event.Changes.Tier.From.Cents-s.Tier.Cents, "USD"), nil
	}
	return nothing, nil
}

func readStandard(e *callback.Event) (entry, error) {
	var event struct {
		Type string `json:"type"`
		Data struct {
			Order    string `json:"order"`
			Amount   int64  `json:"amount"`
			Currency string `json:"currency"`
		} `json:"data"`
	}
	if err := json.Unmarshal(e.Payload, &event); err != nil {
		return nothing, err
	}
	switch event.Type {
	case "invoice.paid":
		return paid(e.Key, event.Data.Order, event.Data.Amount, event.Data.Currency), nil
	case "invoice.refunded":
		return refunded(e.Key, event.Data.Order, event.Data.Amount, event.Data.Currency), nil
	}
	return nothing, nil
}

func paid(id, order string, amount int64, currency string) entry {
	return entry{"payment " + id, order, amount, strings.ToUpper(currency)}
}

func refunded(id, order string, amount int64, currency string) entry {
	return entry{"refund " + id, order, -amount, strings.ToUpper(currency)}
}

// hundredths reads "10.00" as 1000, and nothing that has more or less digits.
func hundredths(s string) (int64, error) {
	whole, cents, _ := strings.Cut(s, ".")
	if len(cents) != 2 {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(whole+cents, 10, 64)
}

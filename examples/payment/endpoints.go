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
	preset callback.Preset
	verify callback.Verify
	read   func(*callback.Event) (entry, error)
}

func endpoints() []endpoint {
	return []endpoint{
		{callback.Stripe(), must(callback.VerifyStripe(stripeSecret)), readStripe},
		{callback.Alipay(), sdk(), readAlipay},
		{callback.WeChatPay(), wechat(), readWeChat},
		{callback.PayPal(), sdk(), readPayPal},
		{callback.Adyen(), sdk(), readAdyen},
		{callback.Square(), sdk(), readSquare},
		{callback.GitHub(), must(callback.VerifyGitHub(githubSecret)), readGitHub},
		{callback.StandardWebhooks(), must(callback.VerifyStandardWebhooks(standardSecret)), readStandard},
	}
}

func readStripe(e *callback.Event) (entry, error) {
	var event struct {
		Type string `json:"type"`
		Data struct {
			Object struct {
				Amount   int64  `json:"amount"`
				Currency string `json:"currency"`
				Metadata struct {
					Order string `json:"order"`
				} `json:"metadata"`
			} `json:"object"`
		} `json:"data"`
	}
	err := json.Unmarshal(e.Payload, &event)
	object := event.Data.Object
	return entryOf(object.Metadata.Order, object.Amount, object.Currency, event.Type == "refund.created"), err
}

func readAlipay(e *callback.Event) (entry, error) {
	form, err := url.ParseQuery(string(e.Payload))
	if err != nil {
		return entry{}, err
	}
	if number := form.Get("out_biz_no"); number != "" {
		n, err := refund(number) // refund_fee is the sum of all refunds so far
		return entryOf(e.Order, n, "CNY", true), err
	}
	n, err := hundredths(form.Get("total_amount"))
	return entryOf(e.Order, n, "CNY", false), err
}

func readWeChat(e *callback.Event) (entry, error) {
	var event struct {
		Type     string `json:"event_type"`
		Resource struct {
			Amount struct {
				Total  int64 `json:"total"`
				Refund int64 `json:"refund"`
			} `json:"amount"`
		} `json:"resource"`
	}
	err := json.Unmarshal(e.Payload, &event)
	if event.Type == "REFUND.SUCCESS" {
		return entryOf(e.Order, event.Resource.Amount.Refund, "CNY", true), err
	}
	return entryOf(e.Order, event.Resource.Amount.Total, "CNY", false), err
}

func readPayPal(e *callback.Event) (entry, error) {
	var event struct {
		Type     string `json:"event_type"`
		Resource struct {
			Order  string `json:"custom_id"`
			Amount struct {
				Value    string `json:"value"`
				Currency string `json:"currency_code"`
			} `json:"amount"`
		} `json:"resource"`
	}
	if err := json.Unmarshal(e.Payload, &event); err != nil {
		return entry{}, err
	}
	n, err := hundredths(event.Resource.Amount.Value)
	return entryOf(event.Resource.Order, n, event.Resource.Amount.Currency, event.Type == "PAYMENT.CAPTURE.REFUNDED"), err
}

func readAdyen(e *callback.Event) (entry, error) {
	var item struct {
		EventCode string `json:"eventCode"`
		Amount    struct {
			Value    int64  `json:"value"`
			Currency string `json:"currency"`
		} `json:"amount"`
	}
	err := json.Unmarshal(e.Payload, &item)
	return entryOf(e.Order, item.Amount.Value, item.Amount.Currency, item.EventCode == "REFUND"), err
}

func readSquare(e *callback.Event) (entry, error) {
	type object struct {
		Reference string `json:"reference_id"`
		Money     struct {
			Amount   int64  `json:"amount"`
			Currency string `json:"currency"`
		} `json:"amount_money"`
	}
	var event struct {
		Data struct {
			Object struct {
				Payment *object `json:"payment"`
				Refund  *object `json:"refund"`
			} `json:"object"`
		} `json:"data"`
	}
	err := json.Unmarshal(e.Payload, &event)
	if refund := event.Data.Object.Refund; refund != nil {
		return entryOf(refund.Reference, refund.Money.Amount, refund.Money.Currency, true), err
	}
	if payment := event.Data.Object.Payment; payment != nil {
		return entryOf(payment.Reference, payment.Money.Amount, payment.Money.Currency, false), err
	}
	return entry{}, err
}

// readGitHub books what a sponsor gives a month, and by how much less later on.
func readGitHub(e *callback.Event) (entry, error) {
	type tier struct {
		Cents int64 `json:"monthly_price_in_cents"`
	}
	var event struct {
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
	err := json.Unmarshal(e.Payload, &event)
	return entry{event.Sponsorship.ID, event.Sponsorship.Tier.Cents - event.Changes.Tier.From.Cents, "EUR"}, err
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
	err := json.Unmarshal(e.Payload, &event)
	return entryOf(event.Data.Order, event.Data.Amount, event.Data.Currency, event.Type == "invoice.refunded"), err
}

func entryOf(order string, amount int64, currency string, back bool) entry {
	if back {
		amount = -amount
	}
	return entry{order, amount, strings.ToUpper(currency)}
}

// hundredths reads "10.00" as 1000, and nothing that has more or less digits.
func hundredths(s string) (int64, error) {
	whole, cents, _ := strings.Cut(s, ".")
	if len(cents) != 2 {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(whole+cents, 10, 64)
}

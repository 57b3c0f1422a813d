package callback

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strings"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/internal/jsonptr"
)

const day = 24 * time.Hour

// plain is a preset that answers with a status alone, because most providers look at
// nothing else.
func plain(name string, items func(d *Delivery, payload []byte) ([]Item, error)) Preset {
	return Preset{
		Name: name, Items: items,
		Done: empty(200), Refused: empty(400), Later: empty(503),
		Deadline: 8 * time.Second, Retention: 4 * day,
	}
}

// Stripe returns the preset of Stripe's webhooks. Its Deadline is 8 s and its Retention 4
// days. The key of an event is its id. Its Transition is its type and the id of the
// object that it is about. Stripe advises to compare these two to find an event that
// Stripe made twice, but two refunds of one charge have the same Transition. The object
// of an event notification (v2) is its related_object. Stripe sends again for up to three
// days until any 2xx (https://docs.stripe.com/webhooks).
func Stripe() Preset {
	return plain("stripe", byID("/id", "/type", "/data/object/id", "/related_object/id"))
}

// PayPal returns the preset of PayPal's webhooks. Its Deadline is 8 s and its Retention 4
// days. The key of an event is its id. Its Transition is its event_type and the id of its
// resource. PayPal sends again up to 25 times within three days until any 2xx
// (https://developer.paypal.com/api/rest/webhooks/rest/).
func PayPal() Preset {
	return plain("paypal", byID("/id", "/event_type", "/resource/id"))
}

// Square returns the preset of Square's webhooks. Its Deadline is 8 s and its Retention 4
// days. The key of an event is its event_id. Its Transition is its type and the id of its
// object, which all updates of that object have in common.
//
// Square waits for 10 seconds, and sends again until a 2xx. Its current pages say for up
// to 24 hours (https://developer.squareup.com/docs/webhooks/troubleshooting). Earlier
// pages said for up to 72 hours, with a schedule of 78 times
// (https://developer.squareup.com/docs/webhooks-api/delivery-sla). Retention is longer than
// either.
func Square() Preset {
	return plain("square", byID("/event_id", "/type", "/data/id"))
}

// GitHub returns the preset of GitHub's webhooks. Its Deadline is 8 s and its Retention 4
// days. GitHub sends a delivery again only if a user asks for it, within three days.
// GitHub signs the body alone. So an attacker who saw a delivery could send it again
// under another X-GitHub-Delivery. Therefore the key of an event is the hash of its body.
// The price is that two events with the same bytes count as one: of the second, OnError
// is told ([ErrAnotherDelivery]).
//
// The Payload of an event is its JSON, also if the webhook is configured to send a form.
// The Order is the repository, or the organization of an event that has no repository. It is
// empty if the event names two repositories.
//
// GitHub waits for 10 seconds
// (https://docs.github.com/en/webhooks/using-webhooks/best-practices-for-using-webhooks).
func GitHub() Preset {
	orders := []jsonptr.Pointer{pointer("/repository/full_name"), pointer("/organization/login")}
	p := plain("github", func(d *Delivery, payload []byte) ([]Item, error) {
		item := Item{
			DeliveryID: d.Header.Get("X-GitHub-Delivery"),
			Transition: "sha256=" + digest(string(d.Body)),
			Payload:    ofForm(payload),
		}
		if valid(item.Payload) == nil {
			p := &picker{json: item.Payload}
			if order := p.first(orders); p.err == nil { // one of two repositories is not guessed
				item.Order = order
			}
		}
		return []Item{item}, nil
	})
	p.ByTransition, p.UnsignedID = true, true
	return p
}

// ofForm returns the JSON of a form that has it in the field payload. It returns anything
// else as it is.
func ofForm(body []byte) []byte {
	if !bytes.HasPrefix(body, []byte("payload=")) {
		return body
	}
	form, err := url.ParseQuery(string(body))
	if err == nil && len(form) == 1 && len(form["payload"]) == 1 {
		return []byte(form.Get("payload"))
	}
	return body
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// StandardWebhooks returns the preset of a sender that keeps to the Standard Webhooks
// specification. sender is your name for it: 1 to 23 letters, digits and dashes, the last
// no dash. New refuses any other. The Name of the preset is webhooks- and the sender. Its
// Deadline is 12 s and its Retention 4 days.
//
// The key of an event is that Name and the webhook-id, or svix-id, which is signed. The Name
// belongs to it because another sender may use the same id. An id with a full stop in it, which
// the specification forbids, is malformed, whatever Verify says. The specification's schedule
// sends again for some 76 hours until a 2xx. It advises to wait for 15 to 30 seconds
// (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
func StandardWebhooks(sender string) Preset {
	p := plain("webhooks-"+sender, func(d *Delivery, payload []byte) ([]Item, error) {
		id, err := standardID(d)
		if err != nil {
			return nil, malformed(err.Error())
		}
		return []Item{{DeliveryID: id, Payload: payload}}, nil
	})
	p.Deadline = 12 * time.Second
	return p
}

// WeChatPay returns the preset of WeChat Pay API v3 for notifications about payments, their
// refunds, and combined payments. Its Deadline is 4 s and its Retention 2 days. Verify must
// return the notification with the decrypted resource in place of the encrypted one, as
// that of [OpenWeChatPay] does:
//
//	{"id": "…", "event_type": "TRANSACTION.SUCCESS", "resource": {"out_trade_no": "…", …}}
//
// A combined payment (combine_out_trade_no) is one event, whose sub_orders its handler
// books. Transfers (out_bill_no) have neither number, so they are refused as malformed. Give
// them a preset with Items of its own.
//
// WeChat Pay does not document that the id stays the same when it sends a notification
// again. So the key of an event is its Transition: event_type, mchid (or sp_mchid, of a
// service provider), out_trade_no and, for a refund, out_refund_no. That of a combined
// payment is event_type, combine_mchid, combine_out_trade_no and the word combined. If the
// resource that Verify returns has no mchid, give each merchant a Name of its own.
//
// WeChat Pay waits for 5 seconds, and sends again for 24 hours and 4 minutes until a 200
// or 204. It wants a failure as JSON
// (https://pay.weixin.qq.com/doc/v3/merchant/4012791861).
func WeChatPay() Preset {
	id, kind := pointer("/id"), pointer("/event_type")
	trade, refund := pointer("/resource/out_trade_no"), pointer("/resource/out_refund_no")
	merchant, provider := pointer("/resource/mchid"), pointer("/resource/sp_mchid")
	combined, combiner := pointer("/resource/combine_out_trade_no"), pointer("/resource/combine_mchid")
	return Preset{
		Name: "wechatpay",
		Items: one(func(p *picker) Item {
			item := Item{DeliveryID: p.maybe(id), Order: p.maybe(combined)}
			if item.Order != "" && p.maybe(trade) == "" {
				item.Transition = transition(p.must(kind), p.maybe(combiner), item.Order, "", "combined")
				return item
			}
			item.Order = p.must(trade)
			item.Transition = transition(p.must(kind), cmp.Or(p.maybe(merchant), p.maybe(provider)), item.Order, p.maybe(refund))
			return item
		}),
		ByTransition: true,
		Done:         empty(204),
		Refused:      fail(400, "the notification is refused"),
		Later:        fail(503, "send it again later"),
		Deadline:     4 * time.Second, Retention: 2 * day,
	}
}

func fail(status int, message string) gate.Reply {
	return gate.Reply{
		Status: status, Body: []byte(`{"code":"FAIL","message":"` + message + `"}`),
		Header: []gate.Field{{Name: "Content-Type", Value: "application/json"}},
	}
}

// Alipay returns the preset of Alipay's asynchronous notifications, a form in the body.
// Its Deadline is 8 s and its Retention 2 days. The key of an event is its notify_id. Its
// Transition is out_trade_no, trade_status and, for a refund, out_biz_no.
//
// Alipay signs the fields as name=value with & between them and escapes nothing, so one
// signature may prove several forms. The preset refuses any form in which one of these
// four fields, total_amount, gmt_refund, refund_fee, app_id or seller_id could differ from
// what Alipay signed. It refuses
//
//   - a field that is there twice;
//   - an & or = in a name;
//   - an & in one of the nine fields, or space around its value;
//   - &notify_id= and the like in any value.
//
// One gap is left: the text behind an & in a subject or body can be sent as a field of a
// refund that Alipay's form did not have.
//
// Alipay sends again for 24 hours and 22 minutes until the body of the answer is the
// seven bytes "success", and nothing else (https://opendocs.alipay.com/open/270/105902).
func Alipay() Preset {
	return Preset{
		Name: "alipay",
		Items: func(_ *Delivery, payload []byte) ([]Item, error) {
			form, err := url.ParseQuery(string(payload))
			if err != nil {
				return nil, malformed("the body is not a form")
			}
			p := &picker{form: form}
			p.apart("notify_id", "out_trade_no", "trade_status", "out_biz_no", "total_amount", "gmt_refund", "refund_fee", "app_id", "seller_id")
			order := p.field("out_trade_no", true)
			item := Item{
				DeliveryID: p.field("notify_id", true),
				Transition: transition(order, p.field("trade_status", true), p.field("out_biz_no", false)),
				Order:      order, Payload: payload,
			}
			return []Item{item}, p.err
		},
		Done: text(200, "success"), Refused: text(400, "fail"), Later: text(503, "fail"),
		Deadline: 8 * time.Second, Retention: 2 * day,
	}
}

// happened returns the transition of an object, or "" if the event is about no object.
// The kind alone would be the same for all such events.
func happened(kind, object string) string {
	if object == "" {
		return ""
	}
	return transition(kind, object)
}

// transition joins words so that two different lists of words give different results.
func transition(words ...string) string {
	for i, word := range words {
		words[i] = url.QueryEscape(word)
	}
	return strings.Join(words, "/")
}

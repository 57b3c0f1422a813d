package callback

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/neap-go/neap/core/internal/jsonptr"
)

// Adyen returns the preset of Adyen's standard webhooks. Its Deadline is 8 s and its
// Retention 31 days. One delivery may have several items. Each item is an event of its
// own. Its key is its Transition, made of eventCode, pspReference and success. A delivery
// is acknowledged when each of its items is done, or, with Options.AckRejected, done or
// rejected. Set AckRejected, because an item that is not acknowledged holds up all items
// that come after it.
//
// Adyen signs eight fields with colons between them, and escapes none. So if a field had
// a colon in it, one signature would prove several events. Only merchantReference may
// have colons. An item with a colon in another of these fields is malformed, and with it the
// delivery. So the signature proves one event and one merchantReference
// (https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures).
// The merchantReference is the Order, which is empty if it is no text.
//
// Adyen waits for 10 seconds
// (https://docs.adyen.com/development-resources/webhooks/handle-webhook-events) and sends
// again for up to 30 days until a 2xx
// (https://docs.adyen.com/development-resources/webhooks/troubleshoot).
func Adyen() Preset {
	items := pointer("/notificationItems")
	p := plain("adyen", func(_ *Delivery, payload []byte) ([]Item, error) { return adyenItems(items, payload) })
	p.ByTransition = true
	p.Done = text(200, "[accepted]")
	p.Retention = 31 * day
	return p
}

// adyenItems returns the items of a standard webhook.
func adyenItems(list jsonptr.Pointer, payload []byte) ([]Item, error) {
	if err := valid(payload); err != nil {
		return nil, err
	}
	var wrapped []json.RawMessage
	raw, err := list.Find(payload)
	if err == nil {
		err = json.Unmarshal(raw, &wrapped)
	}
	if err != nil || len(wrapped) == 0 {
		return nil, malformed(list.String() + " is no list of items")
	}
	items := make([]Item, len(wrapped))
	for i, w := range wrapped {
		body, err := adyenItem.Find(w)
		if err != nil {
			return nil, malformed(fmt.Sprintf("item %d: %v", i, err))
		}
		p := &picker{json: body}
		items[i] = Item{Transition: transition(p.must(adyenCode), p.must(adyenReference), p.must(adyenSuccess)), Payload: body}
		if items[i].Order, err = adyenOrder.Text(body); errors.Is(err, jsonptr.ErrAmbiguous) {
			p.fault(adyenOrder.String(), err) // any other fault, such as half of a character, may be Adyen's own
		}
		for _, member := range adyenJoined {
			if strings.Contains(p.maybe(member), ":") {
				p.fault(member.String(), errColon)
			}
		}
		if p.err != nil {
			return nil, fmt.Errorf("item %d: %w", i, p.err)
		}
	}
	return items, nil
}

var (
	adyenItem      = pointer("/NotificationRequestItem")
	adyenCode      = pointer("/eventCode")
	adyenReference = pointer("/pspReference")
	adyenSuccess   = pointer("/success")
	adyenOrder     = pointer("/merchantReference")
	// adyenJoined are the signed fields except merchantReference, which a shop chooses.
	// If the others have no colon, no text can move from one field to the next.
	adyenJoined = []jsonptr.Pointer{
		adyenReference, pointer("/originalReference"), pointer("/merchantAccountCode"),
		pointer("/amount/value"), pointer("/amount/currency"), adyenCode, adyenSuccess,
	}
	errColon = errors.New("it has a colon, which ends a field in what is signed")
)

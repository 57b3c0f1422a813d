package callback

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/neap-go/neap/core/internal/jsonptr"
)

// ErrMalformed says that a delivery which was verified has not the form that its
// preset expects. It is refused, and OnError is told.
var ErrMalformed = errors.New("callback: the delivery is malformed")

func malformed(why string) error { return fmt.Errorf("%w: %s", ErrMalformed, why) }

func pointer(text string) jsonptr.Pointer {
	p, err := jsonptr.Parse(text)
	if err != nil {
		panic("callback: " + err.Error())
	}
	return p
}

func valid(payload []byte) error {
	if !jsonptr.Valid(payload) {
		return malformed(jsonptr.ErrInvalid.Error())
	}
	return nil
}

// one makes an Items of a function that finds the one event of a JSON payload.
func one(find func(p *picker) Item) func(*Delivery, []byte) ([]Item, error) {
	return func(_ *Delivery, payload []byte) ([]Item, error) {
		if err := valid(payload); err != nil {
			return nil, err
		}
		p := &picker{json: payload}
		item := find(p)
		item.Payload = payload
		return []Item{item}, p.err
	}
}

// picker finds members, or fields of a form, and keeps the first fault.
type picker struct {
	json []byte
	form url.Values
	err  error
}

func (p *picker) fault(name string, err error) string {
	if p.err == nil {
		p.err = malformed(fmt.Sprintf("%s: %v", name, err))
	}
	return ""
}

// must is a member that is there.
func (p *picker) must(member jsonptr.Pointer) string {
	value, err := member.Text(p.json)
	if err != nil {
		return p.fault(member.String(), err)
	}
	return value
}

// maybe is a member, or "" where there is none.
func (p *picker) maybe(member jsonptr.Pointer) string {
	value, err := member.Text(p.json)
	if err != nil && !errors.Is(err, jsonptr.ErrMissing) {
		return p.fault(member.String(), err)
	}
	return value
}

// field is a field of a form, there once at the most.
func (p *picker) field(name string, must bool) string {
	switch values := p.form[name]; {
	case len(values) > 1:
		return p.fault(name, errors.New("it is there twice"))
	case len(values) == 1 && values[0] != "":
		return values[0]
	case must:
		return p.fault(name, jsonptr.ErrMissing)
	}
	return ""
}

// adyenItems are the items of a standard webhook.
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
		items[i] = Item{
			Transition: transition(p.must(adyenCode), p.must(adyenReference), p.must(adyenSuccess)),
			Order:      p.maybe(adyenOrder), Payload: body,
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
)

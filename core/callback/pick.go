package callback

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/neap-go/neap/core/internal/jsonptr"
)

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

// one makes an Items function of a function that finds the one event of a JSON payload.
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

// byID finds an event that has an id of its own. Its transition is its kind and the id of
// its object, which is the first of these members that it has.
func byID(id, kind string, objects ...string) func(*Delivery, []byte) ([]Item, error) {
	idAt, kindAt := pointer(id), pointer(kind)
	objectsAt := make([]jsonptr.Pointer, len(objects))
	for i, object := range objects {
		objectsAt[i] = pointer(object)
	}
	return one(func(p *picker) Item {
		order := p.first(objectsAt)
		return Item{DeliveryID: p.must(idAt), Transition: happened(p.must(kindAt), order), Order: order}
	})
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

// must returns a member that has to be there.
func (p *picker) must(member jsonptr.Pointer) string {
	value, err := member.Text(p.json)
	if err != nil {
		return p.fault(member.String(), err)
	}
	return value
}

// maybe returns a member, or "" if there is none.
func (p *picker) maybe(member jsonptr.Pointer) string {
	value, err := member.Text(p.json)
	if err != nil && !errors.Is(err, jsonptr.ErrMissing) {
		return p.fault(member.String(), err)
	}
	return value
}

// first returns the first of these members that is there, or "" if none is.
func (p *picker) first(members []jsonptr.Pointer) string {
	for _, member := range members {
		if value := p.maybe(member); value != "" {
			return value
		}
	}
	return ""
}

// apart refuses a form whose signature also fits another form in which a named field
// differs. The signature is over name=value joined by &. SDKs may trim values, so a named
// value must have no space around it.
func (p *picker) apart(fields ...string) {
	for _, name := range slices.Sorted(maps.Keys(p.form)) {
		values := p.form[name]
		switch {
		case len(values) > 1:
			p.fault(short(name), errors.New("it is there twice"))
		case strings.ContainsAny(name, "&="):
			p.fault(short(name), errAmpersand)
		}
		for _, field := range fields {
			if strings.Contains(values[0], "&"+field+"=") {
				p.fault(short(name), errAmpersand)
			}
		}
	}
	for _, field := range fields {
		value := p.form.Get(field)
		if strings.Contains(value, "&") {
			p.fault(field, errAmpersand)
		}
		if strings.TrimSpace(value) != value {
			p.fault(field, errors.New("it has space around it"))
		}
	}
}

var errAmpersand = errors.New("it could be taken for several fields, or for part of one")

func short(name string) string { return fmt.Sprintf("%.80q", name) }

// field returns a field of a form.
func (p *picker) field(name string, must bool) string {
	value := p.form.Get(name)
	if value == "" && must {
		return p.fault(name, jsonptr.ErrMissing)
	}
	return value
}

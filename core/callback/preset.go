package callback

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/neap-go/neap/core/gate"
)

// Preset says what a provider sends and expects. Each call of a function such as [Stripe]
// makes a new Preset. You may change it before you give it to New. The zero Preset is not
// usable.
type Preset struct {
	// Name begins the keys of the events, and of the locks of Options.Serialize: 1 to 32
	// letters, digits and dashes, the last no dash. Endpoints with the same Name and
	// guard count as one: an event that one of them has done is done for all. So if two
	// accounts of one provider number their events independently, give them two Names or
	// two guards.
	Name string
	// Items finds the events of a delivery in the payload that Verify returned. An error
	// says that the delivery is malformed. A delivery may have 1 to 100 events. Items
	// must be safe for concurrent use.
	Items func(d *Delivery, payload []byte) ([]Item, error)
	// ByTransition makes the Transition the key of an event, and not the DeliveryID. Set
	// it for a provider that does not promise to send the same DeliveryID again, or that
	// does not sign it.
	ByTransition bool
	// UnsignedID says that Verify does not prove the DeliveryID. An event that is known by
	// its Transition and comes under another DeliveryID is either sent again by somebody
	// with a copy, or has happened again. So OnError is told ([ErrAnotherDelivery]).
	// It needs ByTransition.
	UnsignedID bool

	// Done is the answer that acknowledges an event, with a status from 200 to 299. The
	// provider does not send the event again.
	Done gate.Reply
	// Refused is the answer to a delivery that is malformed or fails Verify, and to an
	// event that the handler rejects. Its status, and that of Later, is 200 to 599.
	Refused gate.Reply
	// Later is the answer that makes the provider send the event again.
	Later gate.Reply

	// Deadline is the time after which Later is sent although Verify or the handler has
	// not returned: a millisecond or more. It must be shorter than the provider waits.
	Deadline time.Duration
	// Retention is how long an event must be remembered: a millisecond or more. It must be
	// longer than the provider goes on sending the event.
	Retention time.Duration
}

func (p *Preset) check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("Preset."+format, args...)) }
	if !isName(p.Name) {
		fault("Name is %.80q: use 1 to 32 letters, digits and dashes, the last no dash", p.Name)
	}
	if p.Items == nil {
		fault("Items is nil: say how the events of a delivery are found")
	}
	for _, r := range []struct {
		name  string
		reply gate.Reply
	}{{"Done", p.Done}, {"Refused", p.Refused}, {"Later", p.Later}} {
		least, most := 200, 599
		if r.name == "Done" {
			most = 299
		}
		if s := r.reply.Status; s < least || s > most {
			fault("%s has the Status %d: use one from %d to %d", r.name, s, least, most)
		}
	}
	if p.UnsignedID && !p.ByTransition {
		fault("UnsignedID is set without ByTransition: an id that anybody can write must not be the key")
	}
	if p.Deadline < time.Millisecond {
		fault("Deadline is %v: use a duration from a millisecond on, shorter than the provider waits", p.Deadline)
	}
	if p.Retention < time.Millisecond {
		fault("Retention is %v: use a duration from a millisecond on, longer than the provider sends again", p.Retention)
	}
	return errors.Join(faults...)
}

func isName(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-':
		default:
			return false
		}
	}
	return s != "" && len(s) <= 32 && !strings.HasSuffix(s, "-")
}

// key returns the key under which an event is known.
func (e *Endpoint) key(item Item) string {
	switch {
	case !e.preset.ByTransition:
		return item.DeliveryID
	case e.opts.DistinctDeliveries && item.Transition != "":
		return transition(item.Transition, item.DeliveryID)
	}
	return item.Transition
}

func text(status int, body string) gate.Reply {
	return gate.Reply{
		Status: status, Body: []byte(body),
		Header: []gate.Field{{Name: "Content-Type", Value: "text/plain; charset=utf-8"}},
	}
}

func empty(status int) gate.Reply { return gate.Reply{Status: status} }

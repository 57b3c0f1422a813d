package callback

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/neap-go/neap/core/gate"
)

// Preset is what a provider sends and expects. Those of this package are made
// anew by each call, so that one which differs a little is a changed copy.
type Preset struct {
	// Name begins the keys of its events, and of the locks of Options.Serialize: up
	// to 32 letters, digits and dashes, the last no dash. What has the same Name
	// behind one guard is one endpoint, and an event that one of its handlers has
	// done is done: two accounts of one provider, of which each has numbers of its
	// own, need a Name each, or a guard each.
	Name string
	// Items finds the events of a delivery in the payload that Verify returned.
	// An error says that it is malformed.
	Items func(d *Delivery, payload []byte) ([]Item, error)
	// ByTransition has an event known by its Transition, for a provider that
	// does not promise to keep its DeliveryID when it sends it again.
	ByTransition bool

	// Done acknowledges: the provider sends it no more.
	Done gate.Reply
	// Refused answers what is malformed, what fails Verify, and what the handler
	// rejects.
	Refused gate.Reply
	// Later has the provider send it again.
	Later gate.Reply

	// Deadline is when Later goes out though the handler is not through: before
	// the provider stops waiting.
	Deadline time.Duration
	// Keep is for how long an event has to be remembered: longer than the
	// provider sends it again.
	Keep time.Duration
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
	if p.Deadline < time.Millisecond {
		fault("Deadline is %v: use a duration from a millisecond on, shorter than the provider waits", p.Deadline)
	}
	if p.Keep < time.Millisecond {
		fault("Keep is %v: use a duration from a millisecond on, longer than the provider sends again", p.Keep)
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

// key is what an event is known by.
func (p *Preset) key(item Item) string {
	if p.ByTransition {
		return item.Transition
	}
	return item.DeliveryID
}

func text(status int, body string) gate.Reply {
	return gate.Reply{
		Status: status, Body: []byte(body),
		Header: []gate.Field{{Name: "Content-Type", Value: "text/plain; charset=utf-8"}},
	}
}

func empty(status int) gate.Reply { return gate.Reply{Status: status} }

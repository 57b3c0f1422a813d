package inflight

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/misuse"
)

// Slot is the answer to one Try. Its exported fields do not change, so several goroutines may
// read them. Do not copy a Slot.
type Slot struct {
	// Allowed reports whether the slot was granted.
	Allowed bool
	// Policy is "inflight", as in header fields and events. It is empty if store.FailOpen
	// decided. Limit and Remaining are then 0, since they are not known.
	Policy string
	// Limit is how many requests of the subject may be in flight at once, and Remaining
	// how many more there could be now.
	Limit, Remaining int64
	// RetryAfter is a second if the slot was denied. It is a guess: when a request in
	// flight will end is not known.
	RetryAfter time.Duration
	// Degraded reports that the store.FailMode made the decision, because Redis did not. Cause
	// says why. Its text may name keys, so show it to operators only.
	Degraded bool
	Cause    error

	of           *Limiter
	key, subject string

	// The mutex of of.held guards the fields below. The token does not change.
	token    string    // of the lease; empty if Redis need not count the slot
	at       int       // index among the slots of the subject
	counted  bool      // Redis has it, as far as is known
	maybe    bool      // not counted, but Redis may have it
	doubt    ask.Doubt // calls without an answer that may still take the slot
	released bool
	member   lease.Member
}

// Release gives the slot back. You may call it any number of times, also concurrently,
// and on a nil or denied Slot; only the first call does anything. It uses only the values
// of ctx: it ends within the budget, even if ctx has ended before.
//
// Release costs one round trip. The error is a [*script.Error] if Redis did not confirm
// the release. The slot is then given back in the background, which takes no longer than
// a lease.
func (s *Slot) Release(ctx context.Context) error {
	if s == nil || !s.Allowed || s.of == nil {
		return nil
	}
	misuse.Context(ctx)
	ctx = context.WithoutCancel(ctx)
	token, in, first := s.of.held.remove(s)
	if !first || token == "" {
		return nil
	}
	return s.of.giveBack(ctx, s.key, token, in)
}

func (c *Limiter) giveBack(ctx context.Context, key, token string, in ask.Doubt) error {
	asked := time.Now()
	_, err := c.lease.release(ctx, key, token)
	switch {
	case err != nil:
		c.takeBack(key, token, ask.Doubt{Last: asked, Calls: 1 + in.Calls}, in.Calls == 0)
	case in.Calls > 0:
		c.takeBack(key, token, in, false)
	}
	return err
}

// renewed is a Limiter as the wheel of leases has it.
type renewed struct{ *Limiter }

// Renew renews slots of one subject, as a [lease.Renewer]. A renewal extends only a lease
// that exists, so a renewal that arrives after a Release changes nothing. If a lease is
// missing although its slot is held, Renew takes the slot again under the same token, all
// of them by one more call.
func (c renewed) Renew(key string, all []*lease.Member) {
	var counted, missing []*Slot
	for _, m := range all {
		s := m.Of.(*Slot)
		switch is, released := c.held.look(s); {
		case released:
			m.Result = lease.Over
		case is:
			counted = append(counted, s)
		default:
			missing = append(missing, s)
		}
	}
	if len(counted) > 0 {
		var absent []*Slot
		there, err := c.lease.renew(key, counted)
		for i, s := range counted {
			switch {
			case err != nil:
			case there[i]:
				s.member.Result = lease.Renewed
			default:
				absent = append(absent, s)
			}
		}
		missing = append(missing, c.held.gone(absent)...)
	}
	if len(missing) > 0 {
		c.takeAgain(key, missing)
	}
}

// takeAgain takes slots of one subject that Redis does not count, as far as is known.
func (c *Limiter) takeAgain(key string, missing []*Slot) {
	asked, losses := time.Now(), c.held.noted()
	_, _, there, err := c.lease.restore(context.Background(), key, "", missing)
	for i, s := range missing {
		c.learn(s, asked, losses, err == nil && there[i], err)
		if err == nil {
			s.member.Result = lease.Renewed
		}
	}
}

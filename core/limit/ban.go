package limit

import (
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/keyspace"
)

// Ban says when a subject is banned because it was denied too often, and for how long.
// [WithBan] gives a policy a Ban.
//
// If the policy has denied a subject After times within Within, it bans the subject: it
// denies every request of the subject until the ban ends. Within begins with the first of
// those denials, as the window of a [FixedWindow] does. After a ban, denials are counted
// from zero.
//
// The first ban lasts as long as For. A ban that begins less than Max after the end of the
// last one is twice as long as the last one, up to Max. A ban that begins later is as long
// as For again.
//
// While a subject is banned, its policy's own limit applies too. So if the ban ends
// before the policy admits again, it changes nothing for a subject that waits; a subject
// that does not wait can cause the next ban. Make For at least as long as the policy's
// window. With an After of 1, the first denial bans.
//
// After is at least 1. Within and For are required. Within, For and Max are whole numbers
// of milliseconds. A zero Max means For: no ban is longer than another.
//
// Only denials by the policy itself are counted, whatever the limiter's other policies
// say. These are not counted:
//
//   - a request that a ban denies: it does not extend the ban, and is not counted for the
//     ban of another policy
//   - Peek, and requests of cost 0; while a ban lasts, they are denied too
//   - denials that a [Limiter.WaitFor] foresees in process; but a [Limiter.Wait] that
//     asks Redis again is counted each time
type Ban struct {
	After  int64
	Within time.Duration
	For    time.Duration
	Max    time.Duration
}

// banning is a policy with a ban.
type banning struct {
	Policy

	ban Ban
}

// WithBan returns a policy that bans subjects which it denies too often. If p has a Ban
// already, b replaces it.
//
// The policy counts in the same key as without a ban. For a subject that was denied there
// is a second key, of some 150 bytes. The numbers of the Ban are part of that second key,
// so a change of them lifts all bans.
//
// In the [State] of a banned subject, Banned is true, RetryAfter is the longer of the
// policy's and the ban's, and Remaining is 0. [Limiter.Ban] bans a subject, and
// [Limiter.Unban] lifts its bans. Reset does not lift them. The ban of a [Shadow] is
// reported and denies nothing. If a limiter has a Ban, Options.RememberDenials repeats
// only bans, because every other denial must be counted. A policy with a Ban cannot be
// [Prepaid].
//
// A denial stands even if it cannot be counted, for example because the memory of Redis
// is full.
//
// An outage lifts no ban that this process knows of: one that Redis has reported to this
// limiter, or to one that With made from the same one, and one that [Limiter.Ban] made
// there. The ban holds with [store.FailLocal] and with [store.FailOpen] until it ends, or until
// [Limiter.Unban] lifts it in this process. This process does not learn what other
// processes do about bans meanwhile. With FailLocal it also bans by its own denials. When
// Redis is back, Redis decides alone.
func WithBan(p Policy, b Ban) Policy {
	switch of := p.(type) {
	case shadowed:
		return Shadow(WithBan(of.Policy, b))
	case banning:
		return banning{of.Policy, b}
	}
	if isNil(p) {
		return p
	}
	return banning{p, b}
}

func (p banning) compile() (rule, error) {
	r, err := p.Policy.compile()
	b := &p.ban
	longest, fault := b.Max, error(nil)
	if longest == 0 {
		longest = b.For
	} else if longest < b.For || longest%time.Millisecond != 0 {
		fault = fmt.Errorf("Ban.Max is %v: it must be a whole number of milliseconds and at least For (%v), or 0 for no longer bans", b.Max, b.For)
	}
	if err := errors.Join(
		err,
		checkPositive("Ban.After", b.After),
		checkWhole("Ban.Within", b.Within, time.Millisecond, "milliseconds"),
		checkWhole("Ban.For", b.For, time.Millisecond, "milliseconds"),
		fault,
	); err != nil {
		return nil, err
	}
	if !fits(b.After, 2) {
		return nil, errInexact("Ban.After", "use an After below 2^52")
	}
	own := &ban{
		tail:   r.id().tail + "!" + b.key(),
		after:  b.After,
		within: b.Within.Milliseconds(),
		first:  b.For.Milliseconds(),
		most:   longest.Milliseconds(),
	}
	r.id().ban = own
	return r, nil
}

// key returns the Ban's part of a Redis key.
func (b *Ban) key() string {
	longest := b.Max
	if longest == 0 {
		longest = b.For
	}
	return fmt.Sprintf("ban-%d-%s-%s-%s", b.After, keyspace.Span(b.Within), keyspace.Span(b.For), keyspace.Span(longest))
}

// ban is a compiled Ban; its durations are in milliseconds.
type ban struct {
	tail                       string // the end of a Redis key
	after, within, first, most int64
}

// record is what is stored of a subject under a ban, in milliseconds. The zero record is
// that of a subject which was never denied.
type record struct {
	last, length  int64 // when the last ban ends, and how long it was
	from, denials int64 // when the counted denials began, and how many there are

	// These say what the process knows of the ban; Redis does not store them.
	told  bool  // Redis has this ban too, or had it
	since int64 // when that was known, in microseconds
}

// left returns how long the ban still lasts.
func (rec *record) left(now int64) int64 { return max(min(rec.last-now, rec.length), 0) }

// count counts a denial. If a ban begins with it, it returns how long the ban lasts.
func (b *ban) count(rec *record, now int64) (left int64) {
	if rec.denials == 0 || now-rec.from >= b.within {
		rec.from, rec.denials = now, 0
	}
	if now-rec.last >= b.most {
		rec.last, rec.length = 0, 0
	}
	if rec.denials++; rec.denials < b.after {
		return 0
	}
	left = b.first
	if rec.length > 0 {
		left = min(2*rec.length, b.most)
	}
	*rec = record{last: now + left, length: left}
	return left
}

// banModel writes into the readings how long each ban still lasts, and reports whether a
// ban of an enforced policy does. If none does, it counts the denials. A cost of 0 or
// less counts nothing.
func banModel(rules []rule, cells []*cell, now, cost int64, into []reading) (banned bool) {
	now /= 1000
	for i, r := range rules {
		if hasBan(r) {
			into[i].ban = cells[i].ban.left(now)
		}
	}
	banned = barred(rules, into)
	for i, r := range rules {
		if b := r.id().ban; b != nil && cost > 0 && !banned && into[i].denied && into[i].ban == 0 {
			into[i].ban = b.count(cells[i].ban, now)
		}
	}
	return banned
}

// barred reports whether a ban of an enforced policy lasts.
func barred(rules []rule, readings []reading) bool {
	for i, r := range rules {
		if readings[i].ban > 0 && !r.id().shadow {
			return true
		}
	}
	return false
}

// refused reports whether the policy did not grant the request, because of its limit or
// because of a ban.
func (r *reading) refused() bool { return r.denied || r.ban > 0 }

// agedBan returns how long a ban still lasts after some nanoseconds have passed.
func agedBan(ban, passed int64) int64 { return max(ban-passed/int64(time.Millisecond), 0) }

// bar changes the state to that of a banned subject, if the reading has a ban.
func (r *reading) bar(s *State) {
	left := time.Duration(r.ban) * time.Millisecond
	if left == 0 {
		return
	}
	s.Banned, s.Allowed = true, false
	if s.Remaining > 0 {
		s.NextAfter = 0
	}
	s.Remaining = 0
	s.RetryAfter, s.NextAfter, s.ResetAfter = max(s.RetryAfter, left), max(s.NextAfter, left), max(s.ResetAfter, left)
}

func hasBan(r rule) bool { return r.id().ban != nil }

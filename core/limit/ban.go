package limit

import (
	"errors"
	"fmt"
	"time"
)

// Ban says when a subject that was denied too often is banned, and for how long. [WithBan] gives a
// policy one.
//
// When the policy has denied a subject After times within Within, it bans the subject: it denies
// whatever the subject asks for, and the ban lasts as long as For says. Within begins with the first
// of those denials, as the window of a [FixedWindow] does. After a ban denials are counted anew. A
// ban that begins no later than Max after the last one ended is twice as long as that, up to Max. One
// that begins later is as long as For again.
//
// The policy denies beside its ban. A ban that ends before the policy admits again changes
// nothing for a subject that waits, and one that does not wait can begin the next: make For at
// least as long as the policy's window. With an After of 1 the first denial bans.
//
// After is at least 1. Within and For are required and whole numbers of milliseconds, as Max
// is. A zero Max means For, so that no ban is longer than another.
//
// A request that a ban denies is not counted, not even for the ban of another policy, and does
// not extend the ban. What counts is a denial by the policy itself, whatever the limiter's
// other policies say. Peek, requests of cost 0 and denials that a [Limiter.WaitFor] foresees in
// process are not counted; a [Limiter.Wait] that asks again counts each time. While the
// ban lasts, Peek and requests of cost 0 are denied too.
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

// WithBan makes a policy that bans a subject which it denies too often. It keeps what the policy
// counts in the same key as without a ban. If the subject was denied, it keeps a second key beside it,
// of some 150 bytes. The numbers of the Ban are a part of that key: a change of them lifts the bans.
//
// In a [State], Banned says that it is a ban; RetryAfter is the longer of the policy's and the
// ban's, and Remaining is 0. [Limiter.Ban] and [Limiter.Unban] ban a subject and lift its bans; Reset
// lifts none. The ban of a [Shadow] is reported and denies nothing. Options.RememberDenials remembers
// bans, and no other denials of a limiter that has a Ban, since each of those is counted. A policy with a
// Ban cannot be [Prepaid].
//
// A denial stands even if it cannot be counted, for example because the memory of Redis is full. A
// process that decides without Redis ([FailLocal]) bans by what it has seen itself. With Options.Instances
// it also keeps to a ban that Redis last told it of.
//
// WithBan of a policy that has a ban replaces that ban.
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
	own.numbers = fmt.Sprintf("%d:%d:%d:%d", own.after, own.within, own.first, own.most)
	r.id().ban = own
	return r, nil
}

// key is its part of a key.
func (b *Ban) key() string {
	longest := b.Max
	if longest == 0 {
		longest = b.For
	}
	return fmt.Sprintf("ban-%d-%s-%s-%s", b.After, span(b.Within), span(b.For), span(longest))
}

// ban is a Ban made ready, in milliseconds.
type ban struct {
	tail                       string // of a Redis key
	numbers                    string // for limit_set.lua
	after, within, first, most int64
}

// record is what is kept of a subject under a ban, in milliseconds. The zero record is a subject
// never denied.
type record struct {
	last, length  int64 // when the last ban ends, and how long it was
	from, denials int64 // when the denials that are counted began, and how many they are
}

// left is how long a ban still lasts.
func (rec *record) left(now int64) int64 { return max(min(rec.last-now, rec.length), 0) }

// count counts a denial, and is how long the ban lasts that begins with it.
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

// banModel notes in the readings how long each ban still lasts, and says whether one that is enforced does. If none
// does, it counts the denials. A cost of 0 or less counts nothing.
func banModel(rules []rule, cells []*cell, now, cost int64, into []reading) (banned bool) {
	now /= 1000
	for i, r := range rules {
		if id := r.id(); id.ban != nil {
			into[i].ban = cells[i].ban.left(now)
			banned = banned || into[i].ban > 0 && !id.shadow
		}
	}
	for i, r := range rules {
		if b := r.id().ban; b != nil && cost > 0 && !banned && into[i].denied && into[i].ban == 0 {
			into[i].ban = b.count(cells[i].ban, now)
		}
	}
	return banned
}

// refused says whether the policy did not grant the request, for what was taken or by a ban.
func (r *reading) refused() bool { return r.denied || r.ban > 0 }

// agedBan is how long a ban still lasts after so many nanoseconds.
func agedBan(ban, passed int64) int64 { return max(ban-passed/int64(time.Millisecond), 0) }

// bar makes the state that of a banned subject, if the reading has a ban.
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

// states is how many states in process a subject has under the rules.
func states(rules []rule) int {
	n := len(rules)
	for _, r := range rules {
		if hasBan(r) {
			n++
		}
	}
	return n
}

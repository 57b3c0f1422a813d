package kind

import (
	"fmt"
	"slices"
	"strings"
)

// Set is the rules of a limiter: all of them grant, or none is charged. The enforced ones come
// before the shadows.
type Set struct {
	Rules []*Rule
	// Signature identifies the rules.
	Signature string
	// Bars are the bans of the rules, in their order. The hold, if there is one, comes last.
	Bars []Bar
	// Overrides reports that a subject may have other rules; Override is the text by which it has
	// these, or empty.
	Overrides bool
	Override  string
	// Bans, Leases, Moves and Entries report that one of the rules has a ban, has a lease, moves, or
	// has entries.
	Bans, Leases, Moves, Entries bool
}

// NewSet returns the set of some rules. With hold, a subject may be put on hold.
func NewSet(rules []*Rule, hold bool) *Set {
	s := &Set{Rules: rules}
	var signature strings.Builder
	for i, r := range rules {
		fmt.Fprintf(&signature, "%d:%s:%t:%t:%s ", len(r.Tail), r.Tail, r.Shadow, r.Once, r.Kept)
		if r.Ban != nil {
			signature.WriteString(r.Ban.Tail + " ")
			s.Bars, s.Bans = append(s.Bars, Bar{r.Ban, i, r.Shadow}), true
		}
		s.Leases = s.Leases || r.Lease > 0
		s.Moves, s.Entries = s.Moves || r.Moves, s.Entries || r.Entries
	}
	s.Signature = signature.String()
	if hold && len(rules) > 0 { // else New returns the fault
		s.Bars = append(s.Bars, Bar{Hold, 0, rules[0].Shadow})
	}
	return s
}

// Take does what the scripts do. It reads every rule's cell at now. If all enforced rules
// grant, it charges each rule that grants. It reports whether it charged any. A cost of -n asks
// about n permits and takes none. It decides for one of n instances; with an n of 0 or 1 it
// decides as the scripts do.
func (s *Set) Take(cells []*Cell, n, now, cost int64, into []Reading) (charged bool) {
	granted := true
	for i, r := range s.Rules {
		asked := r.Costs(max(cost, -cost))
		all, fits := r.room(asked, n)
		r.Advance(cells[i], now)
		into[i] = r.Read(cells[i], all)
		if asked > 0 && (!fits || all*r.Unit > r.Room(cells[i], r.Limit*r.Unit)) {
			into[i].Denied = true
			granted = granted && r.Shadow
		}
	}
	banned := s.ban(cells, now/1000, cost, into)
	charged = granted && cost > 0 && !banned
	for i, r := range s.Rules {
		if charged && !into[i].Refused() {
			into[i] = r.charge(cells[i], r.counts(r.Costs(cost), n))
		}
		if n > 1 {
			into[i].Instances = int32(n) //nolint:gosec // it is bounded where it is set
		}
	}
	return charged
}

// charge takes permits from an advanced cell and returns what the script would report.
func (r *Rule) charge(c *Cell, permits int64) Reading {
	r.Add(c, permits*r.Unit)
	told := r.Read(c, 0)
	if r.Entries {
		told.N[2] = c.now // their mark
	}
	return told
}

// ban writes into the readings how long each bar still lasts, and reports whether one of an
// enforced rule does. If none does, it counts the denials. A cost of 0 or less counts nothing.
// now is in milliseconds.
func (s *Set) ban(cells []*Cell, now, cost int64, into []Reading) (banned bool) {
	for _, b := range s.Bars {
		*b.Left(into) = (*b.Record(cells)).Left(now)
	}
	banned = s.Banned(into)
	for _, b := range s.Bars {
		if b.Counts() && cost > 0 && !banned && into[b.Rule].Denied && into[b.Rule].Ban == 0 {
			into[b.Rule].Ban = b.count(cells[b.Rule].Ban, now)
		}
	}
	return banned
}

// Banned reports whether a bar of an enforced rule lasts.
func (s *Set) Banned(readings []Reading) bool {
	for _, b := range s.Bars {
		if *b.Left(readings) > 0 && !b.Shadow {
			return true
		}
	}
	return false
}

// Verdict is what the figures of a set's rules mean together.
type Verdict struct {
	Allowed bool
	// Binds is the index of the enforced rule that binds, or -1 if there is none. More is how
	// many further such requests it admits.
	Binds int
	More  int64
}

// Judge returns what the readings mean for a request that asks for w, and the figures of each rule,
// in the room of few.
func (s *Set) Judge(readings []Reading, w Wanted, few []Figures) (Verdict, []Figures) {
	v := Verdict{Allowed: true, Binds: -1}
	all := slices.Grow(few[:0], len(s.Rules))
	for i, r := range s.Rules {
		f := r.figures(readings[i], w.Of(r))
		f.Left = f.Remaining
		readings[i].bar(&f)
		all = append(all, f)
		if r.Shadow {
			continue
		}
		v.Allowed = v.Allowed && f.Allowed
		if more := f.Remaining / max(w.Of(r), 1); v.Binds < 0 || binds(&f, more, &all[v.Binds], v.More) {
			v.Binds, v.More = i, more
		}
	}
	return v, all
}

// binds reports whether a rule binds more than another one. more is how many further such
// requests each of them admits. Remaining alone cannot decide it: one policy counts requests,
// and another tokens.
func binds(f *Figures, more int64, than *Figures, others int64) bool {
	switch {
	case f.RetryAfter != than.RetryAfter:
		return f.RetryAfter > than.RetryAfter
	case more != others:
		return more < others
	}
	return f.Remaining < than.Remaining
}

package limit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/neap-go/neap/core/internal/keyspace"
)

// ParsePolicy reads a policy from text, such as "bucket 10/1s burst 20". A text has a kind,
// a limit, and terms in any order:
//
//	bucket 10/1s burst 20                    a TokenBucket of Rate 10 and Per 1s
//	window 1000/1h                           a FixedWindow
//	sliding 100/1m                           a SlidingWindow
//	log 100/1m                               a SlidingLog
//	calendar 100/day in Asia/Shanghai        a CalendarWindow: hour, day, week or month
//
//	burst 20                                 Burst of a bucket
//	in Asia/Shanghai                         Location of a calendar
//	debt 50                                  MaxDebt of a bucket, a window or a calendar
//	name daily                               Name
//	unit tokens                              Unit
//	kept                                     KeepOnChange
//	lease 1m                                 WithLease
//	ban 5/1m for 10m max 1h                  WithBan: After 5, Within 1m; max may be left out
//	per-request                              PerRequest
//	shadow                                   Shadow
//
// Words are separated by spaces. Durations are those of [time.ParseDuration]. A term stands
// once. ParsePolicy checks the policy as New does. The error says what is wrong and what
// would be right.
//
// [Policies] is a list that configuration can have, of one policy or of several.
func ParsePolicy(text string) (Policy, error) {
	p, err := parsePolicy(text)
	if err != nil {
		return nil, fmt.Errorf("limit.ParsePolicy: %.80q: %w", text, err)
	}
	return p, nil
}

func parsePolicy(text string) (Policy, error) {
	w := &words{rest: strings.Fields(text)}
	d := w.draft()
	if w.err != nil {
		return nil, w.err
	}
	p := d.policy()
	_, err := checked(p)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// draft is what the words of a policy say.
type draft struct {
	kind       string
	limit      int64
	length     time.Duration
	every      Period
	name, unit string
	burst      int64
	debt       int64
	in         *time.Location
	terms      terms
}

// policy returns the policy that was read, or nil if there is no such kind.
func (d *draft) policy() (p Policy) {
	switch d.kind {
	case "bucket":
		p = TokenBucket{Name: d.name, Rate: d.limit, Per: d.length, Burst: d.burst, MaxDebt: d.debt, Unit: d.unit}
	case "window":
		p = FixedWindow{Name: d.name, Limit: d.limit, Window: d.length, MaxDebt: d.debt, Unit: d.unit}
	case "sliding":
		p = SlidingWindow{Name: d.name, Limit: d.limit, Window: d.length, Unit: d.unit}
	case "log":
		p = SlidingLog{Name: d.name, Limit: d.limit, Window: d.length, Unit: d.unit}
	case "calendar":
		p = CalendarWindow{Name: d.name, Limit: d.limit, Every: d.every, Location: d.in, MaxDebt: d.debt, Unit: d.unit}
	}
	if d.terms != (terms{}) {
		p = termed{p, d.terms}
	}
	return p
}

// draftOf is the inverse of draft.policy. ok is false if the policy is of a caller's own type.
func draftOf(p Policy) (d draft, ok bool) {
	p = valueOf(p)
	if of, is := p.(termed); is {
		p, d.terms = of.Policy, of.terms
	}
	switch p := p.(type) {
	case TokenBucket:
		d.kind, d.name, d.limit, d.length, d.burst, d.debt, d.unit = "bucket", p.Name, p.Rate, p.Per, p.Burst, p.MaxDebt, p.Unit
	case FixedWindow:
		d.kind, d.name, d.limit, d.length, d.debt, d.unit = "window", p.Name, p.Limit, p.Window, p.MaxDebt, p.Unit
	case SlidingWindow:
		d.kind, d.name, d.limit, d.length, d.unit = "sliding", p.Name, p.Limit, p.Window, p.Unit
	case SlidingLog:
		d.kind, d.name, d.limit, d.length, d.unit = "log", p.Name, p.Limit, p.Window, p.Unit
	case CalendarWindow:
		d.kind, d.name, d.limit, d.every, d.in, d.debt, d.unit = "calendar", p.Name, p.Limit, p.Every, p.Location, p.MaxDebt, p.Unit
	default:
		return d, false
	}
	return d, true
}

// term is one that a text may have behind the limit.
type term struct {
	word string
	of   []string // the kinds that have it; nil means all
	read func(w *words, d *draft)
	// write returns what stands behind the word. It reports false if the term is not said.
	write func(d *draft) (string, bool)
}

// textTerms are in the order in which they are written.
var textTerms = []term{
	{"burst", []string{"bucket"}, func(w *words, d *draft) { d.burst = w.number(w.behind("burst 20")) }, func(d *draft) (string, bool) { return wrote(d.burst) }},
	{"in", []string{"calendar"}, func(w *words, d *draft) { d.in = w.zone() }, func(d *draft) (string, bool) {
		if d.in == nil {
			return "", false
		}
		return " " + d.in.String(), true
	}},
	{"debt", []string{"bucket", "window", "calendar"}, func(w *words, d *draft) { d.debt = w.number(w.behind("debt 50")) }, func(d *draft) (string, bool) { return wrote(d.debt) }},
	{"name", nil, func(w *words, d *draft) { d.name = w.behind("name daily") }, func(d *draft) (string, bool) { return " " + d.name, d.name != "" }},
	{"unit", nil, func(w *words, d *draft) { d.unit = w.behind("unit tokens") }, func(d *draft) (string, bool) { return " " + d.unit, d.unit != "" }},
	{"kept", nil, func(_ *words, d *draft) { d.terms.kept = true }, func(d *draft) (string, bool) { return "", d.terms.kept }},
	{"lease", nil, func(w *words, d *draft) { d.terms.leased, d.terms.lease = true, w.length(w.behind("lease 1m")) }, func(d *draft) (string, bool) {
		return " " + keyspace.Span(d.terms.lease), d.terms.leased
	}},
	{"ban", nil, func(w *words, d *draft) { d.terms.banned, d.terms.ban = true, w.ban() }, func(d *draft) (string, bool) {
		return " " + d.terms.ban.text(), d.terms.banned
	}},
	{"per-request", nil, func(_ *words, d *draft) { d.terms.perRequest = true }, func(d *draft) (string, bool) { return "", d.terms.perRequest }},
	{"shadow", nil, func(_ *words, d *draft) { d.terms.shadow = true }, func(d *draft) (string, bool) { return "", d.terms.shadow }},
}

func wrote(n int64) (string, bool) { return " " + strconv.FormatInt(n, 10), n != 0 }

func (t *term) suits(kind string) bool { return t.of == nil || slices.Contains(t.of, kind) }

// text is how a text says a ban, behind its word.
func (b *Ban) text() string {
	s := fmt.Sprintf("%d/%s for %s", b.After, keyspace.Span(b.Within), keyspace.Span(b.For))
	if b.Max != 0 {
		s += " max " + keyspace.Span(b.Max)
	}
	return s
}

// text writes the draft so that parsePolicy reads it.
func (d *draft) text() string {
	var b strings.Builder
	length := keyspace.Span(d.length)
	if d.kind == "calendar" {
		length = periods[d.every]
	}
	fmt.Fprintf(&b, "%s %d/%s", d.kind, d.limit, length)
	for i := range textTerms {
		t := &textTerms[i]
		if more, said := t.write(d); said && t.suits(d.kind) {
			b.WriteString(" " + t.word + more)
		}
	}
	return b.String()
}

// words are those of a text that are not read yet. err is the first fault.
type words struct {
	rest []string
	err  error
}

func (w *words) faultf(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

func (w *words) draft() (d draft) {
	if len(w.rest) == 0 {
		w.faultf("it is empty: write a policy such as %q", "bucket 10/1s burst 20")
		return d
	}
	d.kind = w.rest[0]
	if d.policy() == nil {
		w.faultf("%.80q is no kind of policy: begin with bucket, window, sliding, log or calendar", d.kind)
		return d
	}
	w.rest = w.rest[1:]
	w.limit(&d)
	said := make(map[string]bool, len(textTerms))
	for w.err == nil && len(w.rest) > 0 {
		w.term(&d, said)
	}
	return d
}

func (w *words) limit(d *draft) {
	form := d.kind + " 10/1s"
	if d.kind == "calendar" {
		form = "calendar 10/day"
	}
	many, per, both := strings.Cut(w.behind(form), "/")
	if w.err == nil && !both {
		w.faultf("%.80q is no limit: write a number, a slash and a time, as in %q", many, form)
	}
	d.limit = w.number(many)
	if d.kind != "calendar" {
		d.length = w.length(per)
		return
	}
	if d.every = periodOf(per); d.every == 0 {
		w.faultf("%.80q is no period of a calendar: write hour, day, week or month", per)
	}
}

// term reads a term, and its word first.
func (w *words) term(d *draft, said map[string]bool) {
	word := w.rest[0]
	w.rest = w.rest[1:]
	var suit []string
	for i := range textTerms {
		t := &textTerms[i]
		if !t.suits(d.kind) {
			continue
		}
		suit = append(suit, t.word)
		if t.word != word {
			continue
		}
		if said[word] {
			w.faultf("%q stands twice: leave out one of them", word)
		}
		said[word] = true
		t.read(w, d)
		return
	}
	w.faultf("%.80q is no term of a %s: write %s", word, d.kind, strings.Join(suit, ", "))
}

// is takes a word, if it is the next.
func (w *words) is(word string) bool {
	if len(w.rest) == 0 || w.rest[0] != word {
		return false
	}
	w.rest = w.rest[1:]
	return true
}

// behind takes the next word. form is an example of what was begun.
func (w *words) behind(form string) string {
	if len(w.rest) == 0 {
		w.faultf("it ends too early: write it as in %q", form)
		return ""
	}
	word := w.rest[0]
	w.rest = w.rest[1:]
	return word
}

func (w *words) number(word string) int64 {
	n, err := strconv.ParseInt(word, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		w.faultf("%.80q is too large a number: use a smaller one", word)
	case err != nil:
		w.faultf("%.80q is no whole number: write digits alone, such as 100", word)
	}
	return n
}

func (w *words) length(word string) time.Duration {
	d, err := time.ParseDuration(word)
	if err != nil {
		w.faultf("%.80q is no time: write a number with a unit, such as 500ms, 1s, 1m or 24h", word)
	}
	return d
}

func (w *words) zone() *time.Location {
	name := w.behind("in Asia/Shanghai")
	if w.err != nil {
		return nil
	}
	in, err := time.LoadLocation(name)
	if err != nil {
		w.faultf("%.80q is no time zone that this machine knows: write one such as Asia/Shanghai, and import time/tzdata where the machine has no zones", name)
	}
	return in
}

func (w *words) ban() (b Ban) {
	const form = "ban 5/1m for 10m max 1h"
	after, within, _ := strings.Cut(w.behind(form), "/")
	b.After, b.Within = w.number(after), w.length(within)
	if !w.is("for") {
		w.faultf("the ban does not say how long it lasts: write it as in %q", form)
		return b
	}
	b.For = w.length(w.behind(form))
	if w.is("max") {
		b.Max = w.length(w.behind(form))
	}
	return b
}

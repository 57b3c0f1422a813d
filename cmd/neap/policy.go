package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// policy is a policy as the command line and tables write it.
type policy struct {
	of   limit.Policy
	ban  limit.Ban
	bans bool
}

// limits is the policy with its ban.
func (p policy) limits() limit.Policy {
	if p.bans {
		return limit.WithBan(p.of, p.ban)
	}
	return p.of
}

// asStored is the policy as its keys have it, with defaults filled in.
func (p policy) asStored() policy {
	switch of := p.of.(type) {
	case limit.TokenBucket:
		of.Burst = cmp.Or(of.Burst, of.Rate)
		p.of = of
	case limit.CalendarWindow:
		of.Location = cmp.Or(of.Location, time.UTC)
		p.of = of
	}
	p.ban.Max = cmp.Or(p.ban.Max, p.ban.For)
	return p
}

const policyForm = "write KIND NUMBER/TIME, such as 'bucket 10/1s burst 20', 'window 1000/1h', 'sliding 100/1m', 'log 100/1m' or " +
	"'calendar 100/day in Asia/Shanghai'; behind it, as the service has them: name NAME, debt N, kept (KeepOnChange), ban 5/1m for 10m max 1h"

// readPolicy reads what --policy says.
func readPolicy(text string) (policy, error) {
	r := &words{all: strings.Fields(text)}
	p := r.policy()
	if r.err != nil {
		return policy{}, usagef("--policy %q: %w: %s", text, r.err, policyForm)
	}
	return p, nil
}

// words are those of a policy that are not read yet.
type words struct {
	all []string
	err error
}

func (r *words) next() string {
	if len(r.all) == 0 {
		r.fault(errors.New("a word is missing"))
		return ""
	}
	word := r.all[0]
	r.all = r.all[1:]
	return word
}

func (r *words) fault(err error) {
	if r.err == nil {
		r.err = err
	}
}

// is takes a word, if it is the next.
func (r *words) is(word string) bool {
	if len(r.all) == 0 || r.all[0] != word {
		return false
	}
	r.all = r.all[1:]
	return true
}

func (r *words) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		r.fault(fmt.Errorf("%q is no number", text))
	}
	return n
}

func (r *words) length(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		r.fault(fmt.Errorf("%q is no duration", text))
	}
	return d
}

var periods = map[string]limit.Period{"hour": limit.Hour, "day": limit.Day, "week": limit.Week, "month": limit.Month}

func (r *words) policy() (p policy) {
	kind := r.next()
	if !slices.Contains([]string{"bucket", "window", "sliding", "log", "calendar"}, kind) {
		r.fault(fmt.Errorf("%q is no kind", kind))
		return p
	}
	many, per, _ := strings.Cut(r.next(), "/")
	n := r.number(many)
	var length time.Duration
	if kind != "calendar" {
		length = r.length(per)
	}
	var name string
	var burst, debt int64
	var in *time.Location
	var kept bool
	for r.err == nil && len(r.all) > 0 {
		switch {
		case kind == "bucket" && r.is("burst"):
			burst = r.number(r.next())
		case kind != "sliding" && kind != "log" && r.is("debt"):
			debt = r.number(r.next())
		case kind == "calendar" && r.is("in"):
			zone := r.next()
			var err error
			if in, err = time.LoadLocation(zone); err != nil {
				r.fault(fmt.Errorf("%q is no zone", zone))
			}
		case r.is("name"):
			name = r.next()
		case r.is("kept"):
			kept = true
		case r.is("ban"):
			p.bans, p.ban = true, r.ban()
		default:
			r.fault(fmt.Errorf("%q does not stand behind %q", r.next(), kind))
		}
	}
	switch kind {
	case "bucket":
		p.of = limit.TokenBucket{Name: name, Rate: n, Per: length, Burst: burst, MaxDebt: debt}
	case "window":
		p.of = limit.FixedWindow{Name: name, Limit: n, Window: length, MaxDebt: debt}
	case "sliding":
		p.of = limit.SlidingWindow{Name: name, Limit: n, Window: length}
	case "log":
		p.of = limit.SlidingLog{Name: name, Limit: n, Window: length}
	case "calendar":
		p.of = limit.CalendarWindow{Name: name, Limit: n, Every: periods[per], Location: in, MaxDebt: debt}
	}
	if kept {
		p.of = limit.KeepOnChange(p.of)
	}
	return p
}

func (r *words) ban() (b limit.Ban) {
	after, within, _ := strings.Cut(r.next(), "/")
	b.After, b.Within = r.number(after), r.length(within)
	if r.is("for") {
		b.For = r.length(r.next())
	}
	if r.is("max") {
		b.Max = r.length(r.next())
	}
	return b
}

// String writes a policy so that readPolicy can read it.
func (p policy) String() string {
	var s, name string
	var debt int64
	switch of := p.of.(type) {
	case limit.TokenBucket:
		name, debt = of.Name, of.MaxDebt
		s = fmt.Sprintf("bucket %d/%s burst %d", of.Rate, short(of.Per), of.Burst)
	case limit.FixedWindow:
		name, debt = of.Name, of.MaxDebt
		s = fmt.Sprintf("window %d/%s", of.Limit, short(of.Window))
	case limit.SlidingWindow:
		name, s = of.Name, fmt.Sprintf("sliding %d/%s", of.Limit, short(of.Window))
	case limit.SlidingLog:
		name, s = of.Name, fmt.Sprintf("log %d/%s", of.Limit, short(of.Window))
	case limit.CalendarWindow:
		name, debt = of.Name, of.MaxDebt
		for word, every := range periods {
			if every == of.Every {
				s = fmt.Sprintf("calendar %d/%s", of.Limit, word)
			}
		}
		if of.Location != nil {
			s += " in " + of.Location.String()
		}
	default:
		s = p.of.PolicyName()
	}
	if debt > 0 {
		s += fmt.Sprintf(" debt %d", debt)
	}
	if name != "" {
		s += " name " + name
	}
	if p.bans {
		s += fmt.Sprintf(" ban %d/%s for %s", p.ban.After, short(p.ban.Within), short(p.ban.For))
		if p.ban.Max > 0 {
			s += " max " + short(p.ban.Max)
		}
	}
	return s
}

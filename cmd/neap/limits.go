package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

type peek struct {
	limited

	Cost int64 `default:"1" help:"How many permits to ask about."`
}

// tally is what peek prints.
type tally struct {
	Name       string       `json:"name"`
	Subject    string       `json:"subject"`
	Allowed    bool         `json:"allowed"`
	RetryAfter int64        `json:"retry_after_ms"`
	Policies   []policyLine `json:"policies"`
	Unread     []string     `json:"unread_keys"`
	Notes      []string     `json:"notes"`
}

// policyLine is a policy's part of it.
type policyLine struct {
	Policy     string `json:"policy"` // as --policy reads it
	Allowed    bool   `json:"allowed"`
	Banned     bool   `json:"banned"`
	OnHold     bool   `json:"on_hold"`
	Limit      int64  `json:"limit"`
	Remaining  int64  `json:"remaining"`
	RetryAfter int64  `json:"retry_after_ms"`
	NextAfter  int64  `json:"next_after_ms"`
	ResetAfter int64  `json:"reset_after_ms"`
}

func (p *peek) Run(ctx context.Context, a *app) error {
	c, err := p.find(ctx, a)
	if err != nil {
		return err
	}
	if len(c.own) == 0 && len(c.unread) > 0 {
		return c.unreadable()
	}
	result, used, err := c.peek(ctx, p.Cost)
	if err != nil {
		return err
	}
	if !used {
		result.Notes = append(result.Notes, c.keys(ctx, p.Keys).instead()...)
	}
	err = a.show(result, result.tell)
	if err == nil && !used {
		err = not
	}
	return err
}

// shadows is said where policies that were read from keys deny.
const shadows = "A limit.Shadow looks here as if it were enforced: its keys do not tell."

// peek asks the limiters, and says whether anything is taken or banned.
func (c *counted) peek(ctx context.Context, cost int64) (result tally, used bool, err error) {
	result = tally{Name: c.name, Subject: c.subject, Allowed: true, Policies: []policyLine{}, Unread: append([]string{}, c.unread...), Notes: []string{}}
	all, err := c.limiters(c.own)
	denied := false
	for _, l := range all {
		d, err := l.PeekN(ctx, c.subject, cost)
		if err != nil {
			return tally{}, false, err
		}
		result.Allowed = result.Allowed && d.Allowed
		result.RetryAfter = max(result.RetryAfter, d.RetryAfter.Milliseconds())
		for s := range d.States() {
			used = used || s.ResetAfter > 0
			denied = denied || !s.Allowed && !s.OnHold
			i := slices.IndexFunc(l.policies, func(p policy) bool { return p.PolicyName() == s.Policy }) // shadow policies come last
			result.Policies = append(result.Policies, policyLine{
				l.policies[i].String(), s.Allowed, s.Banned, s.OnHold, s.Limit, s.Remaining,
				s.RetryAfter.Milliseconds(), s.NextAfter.Milliseconds(), s.ResetAfter.Milliseconds(),
			})
		}
		if len(result.Notes) > 0 {
			continue
		}
		switch own, left, err := given(ctx, l.Limiter, c.subject); {
		case errors.Is(err, errUnreadable):
			result.Notes = append(result.Notes, err.Error())
		case err != nil:
			return tally{}, false, err
		case len(own) > 0:
			result.Notes = append(result.Notes, fmt.Sprintf("%s has %s for %s more, if the limiter has Options.Overrides.", c.subject, strings.Join(own, ", "), span(left)))
		}
	}
	if denied && !c.given {
		result.Notes = append(result.Notes, shadows)
	}
	return result, used, err
}

func (t tally) tell(w *page) {
	if len(t.Policies) == 0 {
		w.linef("%s has counted nothing of %s.", t.Name, t.Subject)
		w.lines(t.Notes)
		return
	}
	w.row("POLICY", "LEFT", "OF", "MORE AFTER", "ALL AFTER", "")
	for _, p := range t.Policies {
		mark := ""
		switch {
		case p.Banned:
			mark = "banned"
		case p.OnHold:
			mark = "on hold"
		case !p.Allowed:
			mark = "denied"
		}
		w.row(p.Policy, p.Remaining, p.Limit, duration(p.NextAfter), duration(p.ResetAfter), mark)
	}
	if t.Allowed {
		w.linef("%s may go on.", t.Subject)
	} else {
		w.linef("%s is denied for %s.", t.Subject, span(duration(t.RetryAfter)))
	}
	for _, end := range t.Unread {
		w.linef("There is also %s, of KeepOnChange: its numbers are not in the key. Give --policy to see it.", end)
	}
	w.lines(t.Notes)
}

func duration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

type reset struct {
	limited

	Yes bool `short:"y" help:"Do not ask."`
}

// done is what a command prints that changes something.
type done struct {
	Name    string   `json:"name"`
	Subject string   `json:"subject"`
	Found   bool     `json:"found"`
	Notes   []string `json:"notes"`
}

func (r *reset) Run(ctx context.Context, a *app) error {
	c, err := r.find(ctx, a)
	if err != nil {
		return err
	}
	if len(c.unread) > 0 {
		return c.unreadable()
	}
	if len(c.own) > 0 {
		if err := a.confirm(ctx, r.Yes, "Forget what "+c.name+" has counted of "+c.subject+", under "+listed(c.own)+", and lift its hold if it has one?"); err != nil {
			return err
		}
	}
	result := done{Name: c.name, Subject: c.subject, Notes: []string{}}
	all, err := c.limiters(c.own)
	for _, l := range all {
		found, err := l.Reset(ctx, c.subject)
		if err != nil {
			return err
		}
		result.Found = result.Found || found
	}
	return c.told(ctx, err, r.Keys, result, "It is forgotten: "+c.subject+" has the whole of its limit.", c.name+" has counted nothing of "+c.subject+".")
}

// told prints one sentence or the other. If nothing was found, it prints what else there is.
func (c *counted) told(ctx context.Context, err error, most int, result done, yes, no string) error {
	if err == nil && !result.Found {
		result.Notes = c.keys(ctx, most).instead()
	}
	return c.app.told(err, result, yes, no)
}

// told prints one sentence or the other.
func (a *app) told(err error, result done, yes, no string) error {
	if err != nil {
		return err
	}
	if !result.Found {
		yes = no
	}
	err = a.show(result, func(w *page) {
		w.linef("%s", yes)
		w.lines(result.Notes)
	})
	if err != nil || result.Found {
		return err
	}
	return not
}

func listed(all []policy) string {
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = p.String()
	}
	return strings.Join(texts, ", ")
}

type ban struct {
	limited

	For time.Duration `required:"" placeholder:"15m" help:"How long the ban lasts, from now on, such as 15m or 48h."`
}

func (b *ban) Run(ctx context.Context, a *app) error {
	if b.For < time.Millisecond {
		return usagef("--for is %v: a ban lasts at least a millisecond; use unban to lift one", b.For)
	}
	c, err := b.find(ctx, a)
	if err != nil {
		return err
	}
	bans := c.bans()
	if len(bans) == 0 {
		return c.noBan()
	}
	// Asked before the ban makes a key of its policy.
	result := done{c.name, c.subject, true, append([]string{}, c.doubts(ctx, bans, b.Keys)...)}
	all, err := c.limiters(bans)
	if err != nil {
		return err
	}
	for _, l := range all {
		if err := l.Ban(ctx, c.subject, b.For); err != nil {
			return err
		}
	}
	return a.show(result, func(w *page) {
		w.linef("%s is banned for %s under %s.", c.subject, span(b.For), listed(bans))
		w.lines(result.Notes)
	})
}

type unban struct{ limited }

func (u *unban) Run(ctx context.Context, a *app) error {
	c, err := u.find(ctx, a)
	if err != nil {
		return err
	}
	bans := c.bans()
	if len(bans) == 0 && (!c.all || len(u.Policy) > 0) {
		return c.noBan()
	}
	result := done{Name: c.name, Subject: c.subject, Notes: []string{}}
	all, err := c.limiters(bans)
	for _, l := range all {
		found, err := l.Unban(ctx, c.subject)
		if err != nil {
			return err
		}
		result.Found = result.Found || found
	}
	return c.told(ctx, err, u.Keys, result, "The ban of "+c.subject+" is lifted. What was counted stays: reset it too, to let it in at once.", c.subject+" is not banned.")
}

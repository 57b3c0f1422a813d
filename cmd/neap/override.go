package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

type limitGroup struct {
	Set   limitSet   `cmd:"" help:"Give a subject other policies for a while."`
	Get   limitGet   `cmd:"" help:"Show the policies that a subject was given."`
	Unset limitUnset `cmd:"" help:"End that."`
	List  limitList  `cmd:"" help:"Show all subjects that were given other policies."`
}

// overridden is a subject of a limiter that has Options.Overrides, on the command line.
type overridden struct {
	Name string `arg:"" help:"The limiter's name. It needs Options.Overrides."`
	whom
}

// overrideLine is what a subject was given.
type overrideLine struct {
	Name     string   `json:"name"`
	Subject  string   `json:"subject"`
	Policies []string `json:"policies"` // as --policy reads them
	Left     int64    `json:"left_ms"`
}

// overrideChange is what set prints.
type overrideChange struct {
	overrideLine

	Replaced []string `json:"replaced"` // what the subject had before, as --policy reads it
}

// open is a limiter whose policies these policies may replace.
func (o *overridden) open(ctx context.Context, a *app, texts ...string) (l *limit.Limiter, subject string, err error) {
	if subject, err = o.text(); err != nil {
		return nil, "", err
	}
	var own []limit.Policy
	for i, text := range append([]string{"window 1/1h"}, texts...) {
		if !slices.Contains(strings.Fields(text), "name") {
			text += fmt.Sprint(" name policy-", i)
		}
		p, err := limit.ParsePolicy(text)
		if err != nil {
			return nil, "", usage(err)
		}
		own = append(own, limit.KeepOnChange(p))
	}
	if len(texts) > 0 {
		own = own[1:]
	}
	_, st, err := a.begin(ctx)
	if err != nil {
		return nil, "", err
	}
	if l, err = limit.New(st, o.Name, own, &limit.Options{Fail: store.FailClosed, Overrides: true}); err != nil {
		return nil, "", usage(err)
	}
	return l, subject, nil
}

type limitSet struct {
	overridden

	Policy []string      `required:"" sep:"none" placeholder:"POLICY" help:"A policy such as 'bucket 1000/1h', with the name, the kind and the window of the policy that it replaces; the name may be missing if only one of the limiter's policies fits. One flag for each."`
	For    time.Duration `required:"" placeholder:"24h" help:"For how long, from now on."`
}

func (s *limitSet) Run(ctx context.Context, a *app) error {
	if s.For < time.Millisecond {
		return usagef("--for is %v: use at least a millisecond, or limit unset to end it", s.For)
	}
	var policies []limit.Policy
	for _, text := range s.Policy {
		p, err := readPolicy(text)
		if err != nil {
			return err
		}
		policies = append(policies, p.Policy)
	}
	l, subject, err := s.open(ctx, a, s.Policy...)
	if err != nil {
		return err
	}
	was, _, err := given(ctx, l, subject)
	if err != nil && !errors.Is(err, errUnreadable) {
		return err
	}
	if err := l.Override(ctx, subject, s.For, policies...); unconfirmed(ctx, err) {
		return err
	} else if err != nil {
		return usage(err)
	}
	change := overrideChange{overrideLine{s.Name, subject, s.Policy, s.For.Milliseconds()}, was}
	return a.show(change, func(w *page) {
		w.linef("%s has %s for %s.", subject, strings.Join(s.Policy, ", "), span(s.For))
		if len(was) > 0 {
			w.linef("It replaces what %s had: %s.", subject, strings.Join(was, ", "))
		}
	})
}

// errUnreadable is about policies that a later version may have written.
var errUnreadable = errors.New("this version of neap cannot read")

// given is what a subject was given in place of a limiter's policies, as --policy reads it. It is nothing if the limiter
// has no Options.Overrides.
func given(ctx context.Context, l *limit.Limiter, subject string) (texts []string, left time.Duration, err error) {
	policies, left, err := l.Overridden(ctx, subject)
	switch {
	case errors.Is(err, limit.ErrNoOverride):
		err = nil
	case err != nil && !unconfirmed(ctx, err):
		err = &failure{exitRefused, fmt.Errorf("%s was given policies that %w, so the limiter's own count: %w; neap limit list shows all of them, and neap limit unset ends them", subject, errUnreadable, err)}
	}
	texts = make([]string, 0, len(policies))
	for _, p := range policies {
		texts = append(texts, limit.Policies{p}.String())
	}
	return texts, left, err
}

// unconfirmed says whether an error is that Redis has not confirmed a call.
func unconfirmed(ctx context.Context, err error) bool {
	return err != nil && (errors.As(err, new(*script.Error)) || ctx.Err() != nil)
}

type limitGet struct{ overridden }

func (g *limitGet) Run(ctx context.Context, a *app) error {
	l, subject, err := g.open(ctx, a)
	if err != nil {
		return err
	}
	texts, left, err := given(ctx, l, subject)
	if err != nil {
		return err
	}
	err = a.show(overrideLine{g.Name, subject, texts, left.Milliseconds()}, func(w *page) {
		if len(texts) == 0 {
			w.linef("%s was given no other policies of %s.", subject, g.Name)
			return
		}
		w.linef("%s has %s for %s more.", subject, strings.Join(texts, ", "), span(left))
	})
	if err == nil && len(texts) == 0 {
		err = not
	}
	return err
}

type limitUnset struct{ overridden }

func (u *limitUnset) Run(ctx context.Context, a *app) error {
	l, subject, err := u.open(ctx, a)
	if err != nil {
		return err
	}
	found, err := l.EndOverride(ctx, subject)
	return a.told(err, done{u.Name, subject, found, []string{}},
		subject+" has the limiter's own policies again.", subject+" was given no other policies of "+u.Name+".")
}

type limitList struct {
	Name string `arg:"" optional:"" help:"Show only those of this limiter."`
	Keys int    `default:"1000000" help:"How many keys of each server to look at."`
}

// overridePage is what list prints.
type overridePage struct {
	Subjects []overrideLine `json:"subjects"`
	Missed   []missed       `json:"missed"`
	Keys     int            `json:"keys_looked_at"`
	AllKeys  bool           `json:"all_keys"`
}

func (l *limitList) Run(ctx context.Context, a *app) error {
	if l.Keys < 1 {
		return usagef("--keys is %d: use 1 or more", l.Keys)
	}
	f, st, err := a.begin(ctx)
	if err != nil {
		return err
	}
	servers, _, err := f.readers(ctx)
	if err != nil {
		return err
	}
	result := overridePage{Subjects: []overrideLine{}, AllKeys: true}
	var partly error
	result.Missed, partly, err = a.readAll(ctx, servers, func(n node) error { return l.read(ctx, a, st, n, &result) })
	if err != nil {
		return err
	}
	result.AllKeys = result.AllKeys && partly == nil
	slices.SortFunc(result.Subjects, func(a, b overrideLine) int { return strings.Compare(a.Name+" "+a.Subject, b.Name+" "+b.Subject) })
	err = a.show(result, result.tell)
	switch {
	case err != nil:
	case partly != nil:
		err = partly
	case len(result.Subjects) == 0:
		err = not
	}
	return err
}

// read asks about the subjects of one server.
func (l *limitList) read(ctx context.Context, a *app, st *store.Store, n node, result *overridePage) error {
	known := map[string]bool{} // SCAN may name a key twice
	looked, all, err := a.scan(ctx, n.rdb, begins(a.Prefix, "limit", l.Name), l.Keys, func(keys []string) error {
		for _, key := range keys {
			if parts, ok := st.ParseKey(key); ok && isOverride(parts.Tail) && !known[key] {
				known[key] = true
				if err := result.add(ctx, a, n.rdb, key, overrideLine{Name: parts.Name, Subject: parts.Subject}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return ofScan(err)
	}
	result.Keys, result.AllKeys = result.Keys+looked, result.AllKeys && all
	return nil
}

// add reads what a key of a subject says.
func (p *overridePage) add(ctx context.Context, a *app, rdb *redis.Client, key string, line overrideLine) error {
	within, cancel := a.within(ctx)
	defer cancel()
	text, err := rdb.Get(within, key).Result()
	if errors.Is(err, redis.Nil) || codeOf(err) == "WRONGTYPE" { // it has ended, or is not neap's
		return nil
	}
	if err != nil {
		return err
	}
	left, err := rdb.PTTL(within, key).Result()
	if err != nil || left <= 0 { // it has ended, or lives for ever, which neap's does not
		return err
	}
	line.Policies, line.Left = strings.Split(text, "; "), left.Milliseconds()
	p.Subjects = append(p.Subjects, line)
	return nil
}

func (p *overridePage) tell(w *page) {
	if len(p.Subjects) > 0 {
		w.row("LIMITER", "SUBJECT", "POLICIES", "ENDS IN")
	}
	for _, s := range p.Subjects {
		w.row(s.Name, s.Subject, strings.Join(s.Policies, ", "), duration(s.Left))
	}
	tellMissed(w, "Subjects", p.Missed)
	switch looked := sightOf(p.Keys, p.AllKeys, p.Missed); {
	case len(p.Subjects) == 0:
		w.linef("No subject was given other policies; %s.", looked)
	case !p.AllKeys:
		w.linef("%s.", looked)
	}
}

func isOverride(end string) bool {
	_, _, err := limit.PolicyOfKey(end)
	return errors.Is(err, limit.ErrKeyOverride)
}

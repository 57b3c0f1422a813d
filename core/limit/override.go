package limit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/limit/internal/cache"
	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/core/limit/internal/wire"
	"github.com/neap-go/neap/core/script"
)

// Override gives a subject other policies for d from now, in all processes that share the
// limiter, without a deployment: for example a customer whose limit support raises for a
// day. What the subject has used counts on. It replaces what an earlier Override gave the
// subject. [Limiter.EndOverride] ends it.
//
// Each policy replaces the limiter's policy of the same kind that has the same Window, or the
// same Every and Location. If there are several, give it the Name of one. Leave out terms such
// as Shadow, and the Unit: those of the policy that it replaces stay, as do policies that none
// replaces. The same holds for limiters that [Limiter.With] made.
//
// A process learns of the change with its next decision about the subject, which takes three
// round trips instead of one. Until then it repeats denials that it remembers,
// for up to Options.RememberDenials. In an outage each process decides by what it has
// learned. A process knows of the overrides of up to MaxLocal subjects; beyond that it
// forgets, and learns anew.
//
// d must be above 0, and is rounded up to whole milliseconds. Override costs one round trip,
// and is safe for concurrent use. The error is [ErrSubject] if the subject is empty,
// [ErrNoOverride] without Options.Overrides, ctx.Err() if the caller's context ended, and a
// [*script.Error] if Redis did not confirm it. It names each policy that is faulty or
// replaces none of the limiter's.
func (l *Limiter) Override(ctx context.Context, subject string, d time.Duration, policies ...Policy) error {
	if err := l.checkOverride(ctx, subject); err != nil {
		return err
	}
	if d <= 0 {
		return fmt.Errorf("limit.Override: d is %v: it lasts at least a millisecond; use EndOverride to end it", d)
	}
	if len(policies) == 0 {
		return errors.New("limit.Override: policies is empty: give at least one Policy, or use EndOverride")
	}
	if _, faults := replaced(l.policies, policies); faults != nil {
		return fmt.Errorf("limit.Override: %w", errors.Join(faults...))
	}
	text, err := Policies(policies).MarshalText()
	if err != nil {
		return fmt.Errorf("limit.Override: %w", err)
	}
	_, _, err = l.override(ctx, subject, string(text), min(kind.CeilDiv(int64(d), int64(time.Millisecond)), kind.MostBan))
	return err
}

// EndOverride ends what Override has given the subject. found reports whether there was
// anything to end. It costs one round trip. Its errors are those of [Limiter.Override].
func (l *Limiter) EndOverride(ctx context.Context, subject string) (found bool, err error) {
	if err := l.checkOverride(ctx, subject); err != nil {
		return false, err
	}
	was, _, err := l.override(ctx, subject, "", 0)
	return was != "", err
}

// Overridden returns the policies that Override has given the subject, and how long they
// still count; none and 0 if there are none. It asks Redis, and costs one round trip. Its
// errors are those of [Limiter.Override]. If a later version of neap has written the
// policies, they may be unreadable, and the error says so.
func (l *Limiter) Overridden(ctx context.Context, subject string) (Policies, time.Duration, error) {
	if err := l.checkOverride(ctx, subject); err != nil {
		return nil, 0, err
	}
	text, left, err := l.override(ctx, subject, "", -1)
	if err != nil || text == "" {
		return nil, 0, err
	}
	var policies Policies
	err = policies.UnmarshalText([]byte(text))
	return policies, time.Duration(left) * time.Millisecond, err
}

func (l *Limiter) checkOverride(ctx context.Context, subject string) error {
	if err := l.check(ctx, subject, 0); err != nil {
		return err
	}
	if l.overrides == nil {
		return ErrNoOverride
	}
	return ctx.Err()
}

// override gives a subject policies for duration milliseconds. With 0 it ends that, and with -1 it
// only asks. It returns what there was before.
func (l *Limiter) override(ctx context.Context, subject, text string, duration int64) (was string, left int64, err error) {
	asked := time.Now()
	switch was, left = l.overrides.of(subject, asked); {
	case l.remote == nil && duration < 0:
		return was, left, nil
	case l.remote != nil:
		if was, left, err = l.remote.Override(ctx, subject, text, duration); err != nil {
			return "", 0, err
		}
	}
	if duration < 0 {
		text, duration = was, left
	}
	l.overrides.learn(subject, text, asked.Add(time.Duration(duration)*time.Millisecond))
	l.changed(subject)
	return was, left, nil
}

// overrides are what a process knows of the policies that subjects have in place of a limiter's. All
// limiters that With made from it share them.
type overrides struct {
	known *cache.Cache[override] // by subject
	first *kind.Set              // that of the limiter that New made

	mu   sync.Mutex
	made *simplelru.LRU[overriding, *Limiter]
}

// override is the text of a subject's policies, and when they end.
type override struct {
	text  string
	until time.Time
}

// overriding is a set, and the text of policies that replace some of its policies.
type overriding struct {
	set  *kind.Set
	text string
}

func newOverrides(most int) *overrides {
	made, err := simplelru.NewLRU[overriding, *Limiter](mostPlans, nil)
	if err != nil {
		panic("limit: " + err.Error()) // only if the size is below 1
	}
	return &overrides{known: cache.New[override](most), made: made}
}

// of returns the text of a subject's policies, and for how many milliseconds more they count.
func (o *overrides) of(subject string, now time.Time) (text string, left int64) {
	known, ok := o.known.Find(subject, "")
	if !ok || !now.Before(known.until) {
		return "", 0
	}
	return known.text, kind.CeilDiv(int64(known.until.Sub(now)), int64(time.Millisecond))
}

func (o *overrides) learn(subject, text string, until time.Time) {
	if text == "" {
		o.known.Remove(subject, "")
		return
	}
	o.known.Put(subject, "", override{text, until})
}

// deciding returns the limiter that decides about a subject, by what this process knows.
func (l *Limiter) deciding(subject string) *Limiter {
	if l.overrides == nil {
		return l
	}
	text, _ := l.overrides.of(subject, time.Now())
	if text == "" {
		return l
	}
	return l.overriddenBy(text)
}

var overrideHint background.Hint

// overriddenBy returns a limiter with the policies that a text says. What this version cannot read,
// and what replaces none of the policies, changes nothing.
func (l *Limiter) overriddenBy(text string) *Limiter {
	o, key := l.overrides, overriding{l.set, text}
	o.mu.Lock()
	defer o.mu.Unlock()
	if of, ok := o.made.Get(key); ok {
		return of
	}
	var policies Policies
	err := policies.UnmarshalText([]byte(text))
	all, faults := replaced(l.policies, policies)
	if l.set != o.first { // it need not have what the policies replace
		faults = slices.DeleteFunc(faults, func(fault error) bool { return errors.Is(fault, errReplacesNone) })
	}
	rules, fault := l.opts.compile(all)
	if fault != nil {
		rules = l.set.Rules
	}
	if err = errors.Join(err, errors.Join(faults...), fault); err != nil {
		overrideHint.Give("neap: some policies that a subject has in place of a limiter's cannot be used, so the limiter's own count: "+
			"set them anew by limit.Limiter.Override or the command neap limit set", "limit", l.name)
	}
	other := *l
	other.over(rules).set.Override = text
	if l.remote != nil {
		other.remote = wire.New(l.remote.Asker, l.space, other.set)
	}
	o.made.Add(key, &other)
	return &other
}

var errReplacesNone = errors.New("it replaces none")

// replaced returns policies with others in place of those that they are meant for, and a fault for
// each that cannot be.
func replaced(of, by []Policy) (all []Policy, faults []error) {
	all = slices.Clone(of)
	has := map[int]int{} // by which of the others a policy is replaced
	for i, p := range by {
		at, put, err := -1, Policy(nil), errors.New("it is nil: give a Policy")
		if !isNil(p) {
			at, put, err = replacing(of, p)
		}
		if first, twice := has[at]; err == nil && twice {
			err = fmt.Errorf("it replaces the same policy as policies[%d]: give one of them", first)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("policies[%d] (%T): %w", i, bare(p), err))
			continue
		}
		all[at], has[at] = put, i
	}
	return all, faults
}

// replacing returns which policy another is meant for, and what replaces it.
func replacing(all []Policy, p Policy) (at int, put Policy, err error) {
	d, ok := draftOf(p)
	switch {
	case !ok:
		return 0, nil, errors.New("it is of a type of your own: give one of the policies of package limit")
	case d.terms != terms{} && d.terms != terms{kept: true}:
		return 0, nil, errors.New("it has terms such as Shadow: leave them out, since those of the limiter's policy stay")
	}
	at = -1
	var names []string
	for i, of := range all {
		name := of.PolicyName()
		if names = append(names, name); d.name != "" && d.name != name || formOf(of) != formOf(p) {
			continue
		}
		if at >= 0 {
			return 0, nil, fmt.Errorf("it may be meant for %q or %q: give it the Name of one of them", names[at], name)
		}
		at = i
	}
	if at < 0 {
		return 0, nil, fmt.Errorf("%w of the limiter's policies %q: give it the Name, the kind and the Window (or Every and Location) of one", errReplacesNone, names)
	}
	of, _ := draftOf(all[at])
	d.name, d.unit, d.terms = of.name, of.unit, of.terms
	put = d.policy()
	_, err = put.compile(false)
	return at, put, err
}

// formOf is equal for two policies that have one state if they have one name and are kept.
func formOf(p Policy) string {
	_, form := bare(valueOf(p)).(interface{ form() (name, form string) }).form()
	return form
}

// mostLearned is how many times a decision asks anew because the policies of its subject have changed.
const mostLearned = 3

// decided calls decide with the limiter that decides about a subject. If the subject has other policies
// than this process knows, it learns them and calls decide again. If it cannot, it calls decide with the
// cause: Redis must not be asked.
func (l *Limiter) decided(ctx context.Context, subject string, decide func(l *Limiter, cause error) error) error {
	if l.overrides == nil {
		return decide(l, nil)
	}
	var err error
	for range mostLearned {
		if err = decide(l.deciding(subject), nil); err != wire.ErrOverridden {
			return err
		}
		if _, _, err = l.override(ctx, subject, "", -1); err != nil {
			return decide(l.deciding(subject), err)
		}
	}
	return decide(l.deciding(subject), &script.Error{Script: l.remote.Script.Name(), Class: script.ErrFailed, Err: wire.ErrOverridden})
}

// askKnowing is ask for a limiter whose policies may be overridden.
func (l *Limiter) askKnowing(ctx context.Context, subject string, cost int64, peek bool) (d Decision, took time.Duration, err error) {
	err = l.decided(ctx, subject, func(l *Limiter, cause error) (err error) {
		if err = l.checkCost(cost); err != nil {
			return err
		}
		if cause != nil {
			d, took, err = l.request(ctx, subject, cost, peek, cause)
		} else {
			d, took, err = l.askAs(ctx, subject, cost, peek)
		}
		return err
	})
	return d, took, err
}

// fits checks a cost against the policies that count for the subject. If it is too large for those
// that this process knows, it learns what the subject has in Redis.
func (l *Limiter) fits(ctx context.Context, subject string, cost int64) error {
	err := l.deciding(subject).checkCost(cost)
	if err == nil || l.overrides == nil || l.remote == nil || cost < 0 || ctx.Err() != nil {
		return err
	}
	if _, _, unknown := l.override(ctx, subject, "", -1); unknown != nil {
		return err
	}
	return l.deciding(subject).checkCost(cost)
}

// checkReplaceable refuses policies that [Limiter.Override] could not replace.
func checkReplaceable(policies []Policy) error {
	var faults []error
	for i, p := range policies {
		switch d, ok := draftOf(p); {
		case !ok:
			faults = append(faults, fmt.Errorf("policies[%d] (%T): it is of a type of your own, and Options.Overrides is set: use the policies of package limit", i, bare(p)))
		case !d.terms.kept:
			faults = append(faults, fmt.Errorf("policies[%d] (%T): Options.Overrides is set: put it into KeepOnChange, so that what was used counts on", i, bare(p)))
		}
	}
	return errors.Join(faults...)
}

func valuesOf(policies []Policy) []Policy {
	values := make([]Policy, len(policies))
	for i, p := range policies {
		values[i] = valueOf(p)
	}
	return values
}

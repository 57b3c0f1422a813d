package limit

import (
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
)

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
	of, ok := o.made.Get(key)
	o.mu.Unlock()
	if ok {
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
	o.mu.Lock()
	defer o.mu.Unlock()
	if of, ok = o.made.Get(key); ok { // another has made it meanwhile
		return of
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

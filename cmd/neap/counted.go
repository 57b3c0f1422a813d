package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
)

// limited is a limiter's subject on the command line.
type limited struct {
	Name string `arg:"" help:"The limiter's name."`
	whom

	Policy []string `sep:"none" placeholder:"POLICY" help:"A policy of the limiter, such as 'bucket 10/1s burst 20': one flag for each. Without it, policies are read from keys in Redis."`
	Keys   int      `default:"1000000" help:"How many keys of Redis to look at for policies; ban does so with --policy too."`
}

// counted is what is known of a limiter and its subject.
type counted struct {
	app     *app
	fleet   *fleet
	store   *store.Store
	name    string
	subject string

	given  bool     // own was given by --policy
	own    []policy // the subject's: what was given, or what it has keys of
	others []policy // what further subjects have keys of
	unread []string // the ends of the subject's keys that KeepOnChange made: they do not have the numbers
	ends   []string // the ends of all keys of the limiter
	other  string   // another subject that has a key
	none   bool     // whether no server has a key of the limiter
	looked int      // how many keys scan looked at
	all    bool     // whether those were all keys
}

// find connects, and finds the policies.
func (l *limited) find(ctx context.Context, a *app) (*counted, error) {
	c := &counted{app: a, name: l.Name, all: true}
	var err error
	if c.subject, err = l.text(); err != nil {
		return nil, err
	}
	for _, text := range l.Policy {
		p, err := readPolicy(text)
		if err != nil {
			return nil, err
		}
		c.own = append(c.own, p)
	}
	if l.Keys < 1 {
		return nil, usagef("--keys is %d: use 1 or more", l.Keys)
	}
	f, st, err := a.begin(ctx)
	if err != nil {
		return nil, err
	}
	c.fleet, c.store = f, st
	if c.given = len(c.own) > 0; c.given {
		_, err := c.limiters(c.own) // checks the policies
		return c, err
	}
	return c, c.scan(ctx, l.Keys)
}

// scan reads policies from the keys of the server that has the subject.
func (c *counted) scan(ctx context.Context, most int) error {
	key, err := c.store.Key("limit", c.name, c.subject)
	if err != nil {
		return usage(err)
	}
	n, err := c.fleet.owner(ctx, key)
	if err != nil {
		return err
	}
	asked, _ := c.store.ParseKey(key)
	own, others := map[string]bool{}, map[string]bool{}
	c.looked, c.all, err = c.app.scan(ctx, n.rdb, begins(c.app.Prefix, "limit", c.name), most, func(keys []string) error {
		for _, key := range keys {
			switch parts, ok := c.store.ParseKey(key); {
			case !ok:
			case parts.Subject == asked.Subject:
				own[parts.Tail] = true
			default:
				if c.other == "" || parts.Subject < c.other { // the same one each time
					c.other = parts.Subject
				}
				if len(others) < 10_000 { // plans of many tenants
					others[parts.Tail] = true
				}
			}
		}
		return nil
	})
	if err != nil && lackIn(err.Error()) == theCommand {
		return fmt.Errorf("%w: give the policies by --policy, or log in as a user with the right to SCAN", err)
	}
	if err != nil {
		return err
	}
	c.own, c.unread = policiesOf(slices.Sorted(maps.Keys(own)))
	c.others, _ = policiesOf(slices.Sorted(maps.Keys(others)))
	maps.Copy(others, own)
	c.ends = slices.Sorted(maps.Keys(others))
	if c.all && len(c.ends) == 0 {
		c.none = c.elsewhere(ctx, n, most) == nil
	}
	return nil
}

var errSeen = errors.New("there is a key")

// elsewhere looks for a key of the limiter on the other servers of a Cluster.
func (c *counted) elsewhere(ctx context.Context, but node, most int) error {
	masters, err := c.fleet.masters(ctx)
	for _, m := range masters {
		if m.addr == but.addr {
			continue
		}
		_, all, err := c.app.scan(ctx, m.rdb, begins(c.app.Prefix, "limit", c.name), most, func(keys []string) error {
			for _, key := range keys {
				if parts, ok := c.store.ParseKey(key); ok {
					c.other = parts.Subject
					return errSeen
				}
			}
			return nil
		})
		if err != nil || !all {
			return cmp.Or(err, errSeen)
		}
	}
	return err
}

// holdAlone is asked about for a subject that has a hold and no counts: a hold is the same under each policy.
var holdAlone = policy{Policy: limit.FixedWindow{Name: "on-hold", Limit: 1, Window: time.Hour}}

// policiesOf reads the ends of keys. The ends that KeepOnChange made have no numbers: they are unread.
func policiesOf(ends []string) (all []policy, unread []string) {
	held := false
	defer func() {
		if held && len(all)+len(unread) == 0 {
			all = []policy{holdAlone}
		}
	}()
	for _, end := range ends {
		p, err := policyOfKey(end)
		at := slices.IndexFunc(all, func(have policy) bool { return have.end == p.end })
		switch {
		case errors.Is(err, limit.ErrKeyNumbers):
			unread = append(unread, end)
		case errors.Is(err, limit.ErrKeyHold):
			held = true
		case err != nil: // of a settlement
		case at >= 0 && !all[at].bans():
			all[at] = p
		case at < 0 || p.bans():
			all = append(all, p)
		}
	}
	return all, unread
}

// asked is a limiter, with its policies in their order.
type asked struct {
	*limit.Limiter

	policies []policy
}

// limiters are as few as possible that together have all the policies: two policies of one name need two limiters.
func (c *counted) limiters(policies []policy) (all []asked, err error) {
	for _, p := range policies {
		at := slices.IndexFunc(all, func(l asked) bool {
			return !slices.ContainsFunc(l.policies, func(other policy) bool { return other.PolicyName() == p.PolicyName() })
		})
		if at < 0 {
			at = len(all)
			all = append(all, asked{})
		}
		all[at].policies = append(all[at].policies, p)
	}
	for i, l := range all {
		group, opts := make([]limit.Policy, len(l.policies)), &limit.Options{Fail: store.FailClosed, Holds: true, Overrides: true}
		for j, p := range l.policies {
			group[j] = p.Policy
			opts.Overrides = opts.Overrides && p.kept() // a service cannot have it otherwise
		}
		if all[i].Limiter, err = limit.New(c.store, c.name, group, opts); err != nil {
			return nil, usage(err)
		}
	}
	return all, nil
}

// keys is c after a look at the keys, which find leaves out if policies were given. It is nil for a user without the right
// to SCAN.
func (c *counted) keys(ctx context.Context, most int) *counted {
	if !c.given {
		return c
	}
	seen := &counted{app: c.app, fleet: c.fleet, store: c.store, name: c.name, subject: c.subject}
	if seen.scan(ctx, most) != nil {
		return nil
	}
	return seen
}

// instead says what the name or the subject may have been meant to be, if keys show that.
func (c *counted) instead() []string {
	switch {
	case c == nil:
	case len(c.own)+len(c.unread) > 0: // the subject is right
	case c.other != "":
		return []string{c.name + " has other subjects. One of them is " + c.other + "."}
	case c.none:
		return []string{"No key in Redis is of a limiter " + c.name + ": check the name."}
	}
	return []string{}
}

// bans are the policies with a ban: the subject's, and those of others, since the subject may have no key yet.
func (c *counted) bans() (all []policy) {
	for _, p := range slices.Concat(c.own, c.others) {
		if p.bans() && !slices.ContainsFunc(all, func(have policy) bool { return have.String() == p.String() }) {
			all = append(all, p)
		}
	}
	return all
}

// doubts say why bans under policies that were given may stop nobody. There are none if keys show that the service bans so,
// and if the keys cannot tell.
func (c *counted) doubts(ctx context.Context, bans []policy, most int) []string {
	if !c.given {
		return nil
	}
	keys := c.keys(ctx, most)
	if keys == nil || !keys.all || len(keys.ends) >= 10_000 { // there may be others
		return nil
	}
	if len(keys.ends) == 0 {
		return keys.instead()
	}
	var counts []string // the policies that subjects are counted under, whether they are banned or not
	for _, end := range keys.ends {
		p, err := policyOfKey(end)
		switch {
		case errors.Is(err, limit.ErrKeyNumbers): // KeepOnChange
			return nil
		case err == nil && !p.bans(): // and not of a settlement
			counts = append(counts, p.String())
		}
	}
	var all []string
	for _, p := range bans {
		without := p.String()
		if counted, err := policyOfKey(p.end); err == nil { // not one of KeepOnChange
			without = counted.String()
		}
		switch {
		case len(counts) > 0 && !slices.Contains(keys.ends, p.end):
			all = append(all, "No subject of "+c.name+" is counted under "+without+" now. Subjects are counted under "+
				strings.Join(counts[:min(3, len(counts))], ", ")+". If the service has no such policy, this ban stops nobody.")
		case !slices.Contains(keys.ends, p.banEnd):
			all = append(all, "Redis does not show whether "+c.name+" bans under "+p.String()+". If its policy has no ban, or other numbers, this ban stops nobody.")
		}
	}
	return all
}

// noBan is the error if no policy has a ban.
func (c *counted) noBan() error {
	if c.given {
		return usagef("--policy %q has no ban: append it as the service has it, such as 'ban 5/1m for 10m'", listed(c.own))
	}
	where := "all keys of the server were looked at"
	if !c.all {
		where = "about " + count(c.looked, "key") + " were looked at, and there are more: see --keys"
	}
	return usagef("no key of %s has the numbers of a ban; %s. Only the key of a ban or of a denied subject has them. If the service's policy "+
		"has a ban, give it by --policy: %s. If not, nothing can be banned", c.name, where, policyForm)
}

// unreadable is the error about policies of KeepOnChange.
func (c *counted) unreadable() error {
	return usagef("%s: KeepOnChange made these keys, which do not have the numbers. Give the policy by --policy: %s", strings.Join(c.unread, ", "), policyForm)
}

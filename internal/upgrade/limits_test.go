//go:build neap_upgrade

package upgrade

import (
	"fmt"
	"slices"
	"time"

	"github.com/neap-go/neap/internal/upgrade/wire"
)

// sets are limits of 100 of each kind of record, in which nothing comes back while the test runs.
var sets = []struct {
	name     string
	policies []wire.Policy
	secret   bool
}{
	{name: "bucket", policies: []wire.Policy{{Kind: "bucket", Limit: 1, Per: day, Burst: 100}}},
	{name: "bucket-with-debt", policies: []wire.Policy{{Kind: "bucket", Limit: 1, Per: day, Burst: 100, Debt: 50}}},
	{name: "bucket-kept", policies: []wire.Policy{{Kind: "bucket", Name: "plan", Limit: 1, Per: day, Burst: 100, Kept: true}}},
	{name: "window", policies: []wire.Policy{{Kind: "window", Name: "daily", Limit: 100, Per: day}}},
	{name: "window-kept", policies: []wire.Policy{{Kind: "window", Name: "plan", Limit: 100, Per: day, Kept: true}}},
	{name: "window-hidden", policies: []wire.Policy{{Kind: "window", Limit: 100, Per: day}}, secret: true},
	{name: "sliding", policies: []wire.Policy{{Kind: "sliding", Limit: 100, Per: day}}},
	{name: "sliding-kept", policies: []wire.Policy{{Kind: "sliding", Name: "plan", Limit: 100, Per: hour, Kept: true}}},
	{name: "log", policies: []wire.Policy{{Kind: "log", Limit: 100, Per: day}}},
	{name: "log-kept", policies: []wire.Policy{{Kind: "log", Name: "plan", Limit: 100, Per: day, Kept: true}}},
	{name: "calendar", policies: []wire.Policy{{Kind: "calendar", Limit: 100, Zone: "Asia/Shanghai"}}},
	{name: "calendar-kept", policies: []wire.Policy{{Kind: "calendar", Name: "plan", Limit: 100, Zone: "UTC", Kept: true}}},
	{name: "set", policies: []wire.Policy{
		{Kind: "window", Name: "watched", Limit: 3, Per: hour, Shadow: true},
		{Kind: "sliding", Name: "slow", Limit: 100, Per: day},
		{Kind: "bucket", Name: "burst", Limit: 1, Per: day, Burst: 150},
		{Kind: "log", Name: "requests", Limit: 1000, Per: day, PerRequest: true},
	}},
}

// passing are limits that come back while the test runs, in some seconds.
var passing = []struct {
	name   string
	policy wire.Policy
}{
	{"bucket", wire.Policy{Kind: "bucket", Limit: 25, Per: second, Burst: 100}},
	{"fast-bucket", wire.Policy{Kind: "bucket", Limit: 2500, Per: second, Burst: 10_000}},
	{"bucket-kept", wire.Policy{Kind: "bucket", Name: "plan", Limit: 25, Per: second, Burst: 100, Kept: true}},
	{"sliding", wire.Policy{Kind: "sliding", Limit: 100, Per: 4 * second}},
	{"sliding-kept", wire.Policy{Kind: "sliding", Name: "plan", Limit: 100, Per: 4 * second, Kept: true}},
	{"log", wire.Policy{Kind: "log", Limit: 100, Per: 4 * second}},
}

var limitScenarios = slices.Concat(shared(), inTime(), []scenario{
	{"fast-bucket", func(p *pair) {
		// It refills in 900 s, so no half of it comes back between two calls.
		c := wire.Call{Conf: wire.Conf{Name: "fast", Policies: []wire.Policy{{Kind: "bucket", Limit: 1100, Per: second, Burst: 1_000_000}}}, Key: p.key}
		p.take(p.one, c, 600_000, true)
		p.take(p.two, c, 300_000, true)
		p.take(p.one, c, 500_000, false)
		p.take(p.two, c, 500_000, false)
	}},
	{"numbers-that-change", func(p *pair) {
		c := wire.Call{Key: p.key}
		plan := func(limit int64) wire.Conf {
			return wire.Conf{Name: "plans", Policies: []wire.Policy{{Kind: "window", Name: "plan", Limit: limit, Per: day, Kept: true}}}
		}
		c.Conf = plan(10)
		p.take(p.one, c, 10, true)
		p.take(p.one, c, 1, false)
		c.Conf = plan(25)
		p.take(p.two, c, 15, true)
		p.take(p.two, c, 1, false)
		c.Conf = plan(10)
		p.take(p.one, c, 1, false)
	}},
	{"prepaid", func(p *pair) {
		conf := wire.Conf{Name: "prepaid", Policies: []wire.Policy{{Kind: "window", Name: "daily", Limit: 100, Per: day}}}
		c := wire.Call{Conf: conf, Key: p.key}
		ahead := c
		ahead.Conf.Prepaid = 32
		for range 40 {
			p.take(p.one, ahead, 1, true)
		}
		p.want(p.one, "limit.return", ahead)
		p.take(p.two, c, 60, true)
		p.take(p.two, c, 1, false)
		p.take(p.one, ahead, 1, false)
	}},
	{"refund", func(p *pair) {
		for _, kind := range []string{"window", "sliding", "log", "bucket", "calendar"} {
			c := wire.Call{Conf: wire.Conf{Name: "refunds", Policies: []wire.Policy{{Kind: kind, Limit: 10, Per: day, Burst: burst(kind, 10), Zone: zone(kind)}}}, Key: p.key}
			mine := p.named(c, "mine")
			p.take(p.one, mine, 4, true)
			p.take(p.two, c, 6, true)
			p.take(p.two, c, 1, false)
			p.want(p.one, "limit.refund", of(mine))
			p.take(p.two, c, 5, false)
			p.take(p.two, c, 4, true)
		}
	}},
	{"settle", func(p *pair) {
		for _, policy := range []wire.Policy{
			{Kind: "window", Limit: 100, Per: day, Debt: 50},
			{Kind: "calendar", Limit: 100, Zone: "UTC", Debt: 50},
			{Kind: "bucket", Limit: 1, Per: day, Burst: 100, Debt: 50},
			{Kind: "bucket", Name: "kept", Limit: 1, Per: day, Burst: 100, Debt: 50, Kept: true},
		} {
			c := wire.Call{Conf: wire.Conf{Name: "tokens", Policies: []wire.Policy{policy}}, Key: p.key}
			first, second := p.named(c, "first"), p.named(c, "second")
			p.take(p.one, first, 40, true)
			p.take(p.two, second, 40, true)
			first.N, second.N = 20, 120
			p.want(p.one, "limit.settle", of(first))
			p.left(p.two, c, 40)
			p.want(p.two, "limit.settle", of(second)) // 140 used, 40 of them owed
			p.take(p.one, c, 1, false)
			p.take(p.two, c, 1, false)
			p.left(p.one, c, 0)
			if a := p.want(p.one, "limit.reset", c); !a.OK {
				p.Errorf("reset of %s by the %s: it found nothing, want what the other took", policy.Kind, p.one.version)
			}
			p.left(p.two, c, 100)
		}
	}},
	{"estimates", func(p *pair) {
		c := wire.Call{Conf: wire.Conf{Name: "estimates", Policies: []wire.Policy{{Kind: "window", Name: "daily", Limit: 10, Per: day, Lease: shortLease}}}, Key: p.key}
		crashed := p.spare()
		p.take(crashed, p.named(c, "lost"), 6, true)
		p.take(p.one, p.named(c, "live"), 4, true)
		crashed.kill()
		p.awaits("estimate of a dead process back", func() bool {
			c.N = 6
			return p.want(p.two, "limit.take", p.named(c, "next")).OK
		})
		for _, by := range []*process{p.two, p.one} { // p.one renews, and its estimate stays
			p.take(by, c, 1, false)
		}
	}},
	{"bans", func(p *pair) {
		after := int64(4)
		c := wire.Call{Conf: wire.Conf{Name: "bans", Policies: []wire.Policy{{Kind: "window", Name: "login", Limit: 1, Per: day, Ban: &after}}}, Key: p.key}
		p.take(p.one, c, 1, true)
		for _, by := range []*process{p.one, p.two, p.one, p.two} { // the fourth denial bans
			if p.banned(by, c) {
				p.Errorf("by the %s: the subject is banned before its 4th denial", by.version)
			}
			p.take(by, c, 1, false)
		}
		for _, by := range []*process{p.one, p.two} {
			if !p.banned(by, c) {
				p.Errorf("by the %s: the subject is not banned after 4 denials, two of each version, want a ban", by.version)
			}
		}
		if a := p.want(p.two, "limit.unban", c); !a.OK || p.banned(p.one, c) {
			p.Errorf("the ban stands after an unban by the %s, want none", p.two.version)
		}
		c.For = hour
		p.want(p.one, "limit.ban", c)
		if !p.banned(p.two, c) {
			p.Errorf("a ban by the %s: the %s does not know of it", p.one.version, p.two.version)
		}
	}},
	{"slots", func(p *pair) {
		c := wire.Call{Conf: wire.Conf{Name: "flight", Slots: 3, Lease: shortLease}, Key: p.key}
		try := func(by *process, as string, want bool) {
			p.Helper()
			if a := p.want(by, "slots.try", p.named(c, as)); a.OK != want {
				p.Fatalf("a slot by the %s: got granted %v, want %v", by.version, a.OK, want)
			}
		}
		crashed := p.spare()
		try(crashed, "a", true)
		try(p.two, "b", true)
		try(p.one, "c", true)
		for _, by := range []*process{p.one, p.two} {
			try(by, "d", false)
			if a := p.want(by, "slots.count", c); a.N != 3 {
				p.Errorf("in flight by the %s: got %d, want 3", by.version, a.N)
			}
		}
		p.want(p.one, "slots.release", of(p.named(c, "c")))
		try(p.two, "e", true)
		try(p.one, "f", false)
		crashed.kill() // its slot comes back, and those that are renewed stay
		p.awaits("slot of a dead process back", func() bool { return p.want(p.two, "slots.try", p.named(c, "g")).OK })
		try(p.one, "h", false)
	}},
})

// shared are scenarios in which two versions use up one limit of 100.
func shared() (all []scenario) {
	for _, s := range sets {
		all = append(all, scenario{"limit-" + s.name, func(p *pair) {
			c := wire.Call{Conf: wire.Conf{Name: "shared", Policies: s.policies, Secret: s.secret}, Key: p.key}
			p.take(p.one, c, 30, true)
			p.left(p.two, c, 70)
			p.take(p.two, c, 30, true)
			p.left(p.one, c, 40)
			p.take(p.one, c, 41, false)
			p.take(p.two, c, 41, false)
			p.take(p.two, c, 15, true)
			p.take(p.one, c, 25, true)
			p.take(p.one, c, 1, false)
			p.take(p.two, c, 1, false)
			p.left(p.two, c, 0)
		}})
	}
	return all
}

// inTime are scenarios in which both versions tell of one limit while its permits come back.
func inTime() (all []scenario) {
	for _, s := range passing {
		all = append(all, scenario{"time-" + s.name, func(p *pair) {
			for try := range 5 { // a machine that stood still has seen nothing come back
				c := wire.Call{Conf: wire.Conf{Name: "passing", Policies: []wire.Policy{s.policy}}, Key: fmt.Sprint(p.key, try)}
				if p.comesBack(c, max(s.policy.Burst, s.policy.Limit)) {
					return
				}
			}
			p.Fatalf("got no two versions that were asked while a part of the permits was back, want them")
		}})
	}
	return all
}

// comesBack uses up a limit by both versions, and watches how its permits come back. It
// asks one version between two questions to the other, so the answer must lie between
// the other's two answers. It takes some permits again by both versions, so that all
// parts of a record are in use. It returns whether any permits came back.
func (p *pair) comesBack(c wire.Call, full int64) (seen bool) {
	p.Helper()
	for i := range int64(10) {
		by := []*process{p.one, p.two}[i%2]
		c.N = full / 10
		p.want(by, "limit.take", c)
		if c.Conf.Policies[0].Kind == "log" {
			time.Sleep(100 * time.Millisecond) // so that its entries leave one after the other
		}
	}
	c.N = 0
	between, takes := 0, 0
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		before, told, after := p.want(p.one, "limit.peek", c).N, p.want(p.two, "limit.peek", c).N, p.want(p.one, "limit.peek", c).N
		if told < before || told > after {
			p.Fatalf("left of %v: got %d by the %s, want %d to %d as before and after by the %s", kinds(c), told, p.two.version, before, after, p.one.version)
		}
		if before > 0 && after < full {
			between++
		}
		if after > full/2 && takes < 6 {
			by := []*process{p.one, p.two}[takes%2]
			takes++
			again := c
			again.N = full / 20
			p.want(by, "limit.take", again)
		}
		if after == full {
			break
		}
	}
	return between >= 10 && takes == 6
}

// take takes n permits, and ends the scenario unless they are granted, or denied, as wanted.
func (p *pair) take(by *process, c wire.Call, n int64, want bool) {
	p.Helper()
	c.N = n
	if a := p.want(by, "limit.take", c); a.OK != want {
		p.Fatalf("%d permits of %v by the %s: got granted %v, want %v (%d left)", n, kinds(c), by.version, a.OK, want, a.N)
	}
}

// left ends the scenario unless so much is left by that version.
func (p *pair) left(by *process, c wire.Call, want int64) {
	p.Helper()
	if a := p.want(by, "limit.peek", c); a.N != want {
		p.Fatalf("left of %v by the %s: got %d, want %d", kinds(c), by.version, a.N, want)
	}
}

func (p *pair) banned(by *process, c wire.Call) bool {
	p.Helper()
	return p.want(by, "limit.banned", c).OK
}

// want is the answer of a call, which must be no error.
func (p *pair) want(by *process, op string, c wire.Call) wire.Answer {
	p.Helper()
	c.Op = op
	return by.want(p, "", c)
}

// refused is want of a call whose answer must be this error.
func (p *pair) refused(by *process, word, op string, c wire.Call) {
	p.Helper()
	c.Op = op
	by.want(p, word, c)
}

// named is a call whose result has a name that no other scenario uses.
func (p *pair) named(c wire.Call, name string) wire.Call {
	c.As = fmt.Sprintf("%s %v %s", p.key, kinds(c), name)
	return c
}

// of is a call about what a named call got.
func of(c wire.Call) wire.Call {
	c.Of, c.As = c.As, ""
	return c
}

func kinds(c wire.Call) (all []string) {
	for _, p := range c.Conf.Policies {
		all = append(all, p.Kind+p.Name)
	}
	return all
}

func burst(kind string, n int64) int64 {
	if kind == "bucket" {
		return n
	}
	return 0
}

func zone(kind string) string {
	if kind == "calendar" {
		return "UTC"
	}
	return ""
}

package console

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/neap-go/neap/core/store"
)

// gauges are those that all open pages are told. They are read at most four times a second, however many pages are open:
// with 10,000 limiters a reading takes milliseconds.
type gauges struct {
	mu     sync.Mutex
	latest []gauge // frames share it, so nothing changes it
	at     time.Time
}

func (g *gauges) read(c *console) []gauge {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); g.latest == nil || now.Sub(g.at) >= each/2 {
		g.latest, g.at = bounded(c.store.Gauges(), c.timeline.lines(c.timeline.now())), now
	}
	return g.latest
}

// gauge is a store.Gauge as the page is told of it.
type gauge struct {
	Primitive store.Primitive `json:"primitive"`
	Name      string          `json:"name"`
	// Other says that the gauge adds up those for which the page has no line.
	Other      bool     `json:"other,omitempty"`
	Policies   []string `json:"policies,omitempty"`
	Active     int      `json:"active"`
	Waiting    int      `json:"waiting"`
	Background int      `json:"background"`
	Open       bool     `json:"open,omitempty"`
	Failing    int64    `json:"failing,omitempty"` // milliseconds
}

// add adds a gauge of the same name, or another of the same kind.
func (g *gauge) add(of *gauge) {
	g.Active += of.Active
	g.Waiting += of.Waiting
	g.Background += of.Background
	g.Open = g.Open || of.Open
}

// bounded makes the gauges fit on a page of maxRows lines. It adds up gauges of one name. While there is room, a name
// keeps a gauge of its own: first the names that had an event, then those that do something at the moment, then the
// others, in the order in which they were made. One gauge for each primitive sums up the rest. Servers always have one.
func bounded(all []store.Gauge, lines map[id][]string) []gauge {
	named, servers := addedUp(all)
	left := maxRows
	for _, policies := range lines {
		left -= len(policies)
	}
	told, others := []gauge{}, map[store.Primitive]*gauge{}
	rank := func(g *gauge) int {
		switch {
		case len(lines[id{g.Primitive, g.Name}]) > 0:
			return 0
		case g.Active+g.Waiting+g.Background > 0 || g.Open:
			return 1
		}
		return 2
	}
	ranked := [3][]*gauge{}
	for i := range named {
		g := &named[i]
		ranked[rank(g)] = append(ranked[rank(g)], g)
	}
	for _, g := range slices.Concat(ranked[:]...) {
		called := lines[id{g.Primitive, g.Name}]
		needs := g.needs(called)
		switch {
		case needs <= left:
			left -= needs
		case len(called) > 0:
			g.Policies = called
		default:
			if others[g.Primitive] == nil {
				others[g.Primitive] = &gauge{Primitive: g.Primitive, Other: true}
			}
			others[g.Primitive].add(g)
			continue
		}
		told = append(told, *g)
	}
	for _, primitive := range slices.Sorted(maps.Keys(others)) {
		told = append(told, *others[primitive])
	}
	return append(told, servers...)
}

// addedUp returns one gauge for each name, in the order in which the first of a name was made, and those of servers.
func addedUp(all []store.Gauge) (named, servers []gauge) {
	named = make([]gauge, 0, len(all))
	at := make(map[id]int, len(all))
	for i := range all {
		of := &all[i]
		g := gauge{
			Primitive: of.Primitive, Name: of.Name, Policies: of.Policies,
			Active: of.Active, Waiting: of.Waiting, Background: of.Background, Open: of.Open, Failing: of.Failing.Milliseconds(),
		}
		if of.Primitive == store.Server {
			servers = append(servers, g)
			continue
		}
		which := id{of.Primitive, of.Name}
		before, is := at[which]
		if !is {
			at[which] = len(named)
			named = append(named, g)
			continue
		}
		same := &named[before]
		same.add(&g)
		same.Policies = slices.Clip(same.Policies) // so that append copies: they are those of the primitive
		for _, policy := range of.Policies {
			if len(same.Policies) <= maxRows && !slices.Contains(same.Policies, policy) {
				same.Policies = append(same.Policies, policy)
			}
		}
	}
	return named, servers
}

// needs is how many lines the page draws for the gauge besides those that it has.
func (g *gauge) needs(has []string) (n int) {
	policies := g.Policies
	if len(policies) == 0 {
		policies = []string{""}
	}
	for _, policy := range policies {
		if !slices.Contains(has, policy) {
			n++
		}
	}
	return n
}

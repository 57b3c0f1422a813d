package console

import (
	"maps"
	"slices"

	"github.com/neap-go/neap/core/store"
)

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
func (g *gauge) add(of *store.Gauge) {
	g.Active += of.Active
	g.Waiting += of.Waiting
	g.Background += of.Background
	g.Open = g.Open || of.Open
}

// bounded makes the gauges fit on a page of maxRows lines. It adds up gauges of one name. While there is room, a name
// keeps a gauge of its own: first the names that had an event, then those that do something at the moment, then the
// others, in the order in which they were made. One gauge for each primitive sums up the rest. Servers always have one.
func bounded(all []store.Gauge, lines map[id][]string) []gauge {
	named, order, servers := map[id]*gauge{}, []id{}, []gauge{}
	for i := range all {
		of := &all[i]
		g := &gauge{Primitive: of.Primitive, Name: of.Name, Policies: of.Policies, Failing: of.Failing.Milliseconds()}
		g.add(of)
		if of.Primitive == store.Server {
			servers = append(servers, *g)
			continue
		}
		which := id{of.Primitive, of.Name}
		if same := named[which]; same != nil {
			same.add(of)
			same.Policies = slices.Clip(same.Policies) // so that append copies: they are those of the primitive
			for _, policy := range of.Policies {
				if len(same.Policies) <= maxRows && !slices.Contains(same.Policies, policy) {
					same.Policies = append(same.Policies, policy)
				}
			}
			continue
		}
		named[which], order = g, append(order, which)
	}
	rank := func(which id) int {
		g := named[which]
		switch {
		case len(lines[which]) > 0:
			return 0
		case g.Active+g.Waiting+g.Background > 0 || g.Open:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(order, func(a, b id) int { return rank(a) - rank(b) })

	left := maxRows
	for _, policies := range lines {
		left -= len(policies)
	}
	told, others := []gauge{}, map[store.Primitive]*gauge{}
	for _, which := range order {
		g := named[which]
		needs := g.needs(lines[which])
		switch {
		case needs <= left:
			left -= needs
		case len(lines[which]) > 0:
			g.Policies = lines[which]
		default:
			if others[which.Primitive] == nil {
				others[which.Primitive] = &gauge{Primitive: which.Primitive, Other: true}
			}
			others[which.Primitive].add(&store.Gauge{Active: g.Active, Waiting: g.Waiting, Background: g.Background, Open: g.Open})
			continue
		}
		told = append(told, *g)
	}
	for _, primitive := range slices.Sorted(maps.Keys(others)) {
		told = append(told, *others[primitive])
	}
	return append(told, servers...)
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

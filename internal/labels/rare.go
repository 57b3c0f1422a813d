package labels

import "github.com/neap-go/neap/core/store"

// rare are the events that alerts wait for.
var rare = []store.Event{
	{Primitive: store.Lock, Outcome: store.Lost, Change: true},
	{Primitive: store.Guard, Outcome: store.InDoubt, Change: true},
	{Primitive: store.Guard, Outcome: store.InDoubt},
	{Primitive: store.Stock, Outcome: store.Disagreed},
}

// Rare returns the rare events that a primitive can have. A counter of them must be 0 before the first one:
// Prometheus does not count the first value of a series as an increase.
func Rare(g *store.Gauge) (all []store.Event) {
	for _, e := range rare {
		if e.Primitive == g.Primitive {
			e.Name = g.Name
			all = append(all, e)
		}
	}
	return all
}

package console

import (
	"context"
	"errors"
	"fmt"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
)

// Primitives are some of those of a service.
type Primitives struct {
	Limiters []*limit.Limiter
	InFlight []*inflight.Limiter // can be looked up, and there is no action on them
	Lockers  []*lock.Locker
	Guards   []*idempotency.Guard
	Stocks   []*stock.Stock
}

// id says which primitive it is.
type id struct {
	Primitive store.Primitive `json:"primitive"`
	Name      string          `json:"name"`
}

// thing is a primitive that the page offers.
type thing struct {
	look    look
	now     func(ctx context.Context, key string) (edition, error) // nil if it has no editions
	actions map[string]act                                         // nil if it may be looked up alone
	order   []string                                               // of the actions on the page
}

// offer tells the page of a thing.
type offer struct {
	id
	Actions []string `json:"actions"`
}

// things are those of the Options, in their order.
type things struct {
	all   map[id]thing
	order []id
}

func (t *things) offers() (all []offer) {
	for _, which := range t.order {
		all = append(all, offer{which, append([]string{}, t.all[which].order...)})
	}
	return all
}

// things checks what the Options name. A primitive may stand in both, and counts as one that may be acted upon.
func (o *Options) things() (things, error) {
	t := things{all: map[id]thing{}}
	acts, err := t.addAll("Actions", o.Actions, true, nil)
	_, fault := t.addAll("LookUp", o.LookUp, false, acts)
	return t, errors.Join(err, fault)
}

// addAll adds those of a field. Those that another field has too are left out.
func (t *things) addAll(field string, p Primitives, acts bool, others map[any]bool) (added map[any]bool, err error) {
	added = map[any]bool{}
	var faults []error
	add := func(part string, i int, primitive store.Primitive, of interface{ Name() string }, own thing) {
		where := fmt.Sprintf("%s.%s[%d]", field, part, i)
		name, made := nameOf(of)
		which := id{primitive, name}
		switch _, twice := t.all[which]; {
		case !made:
			faults = append(faults, fmt.Errorf("%s is nil or zero: pass one that its constructor has made", where))
		case others[of] || added[of]:
		case twice:
			faults = append(faults, fmt.Errorf("%s: another %s is named %q too, and the page could not tell them apart: pass one of them", where, primitive, name))
		default:
			if !acts {
				own.actions, own.order = nil, nil
			}
			t.all[which], added[of] = own, true
			t.order = append(t.order, which)
		}
	}
	for i, l := range p.Limiters {
		add("Limiters", i, store.Limit, l, limiterThing(l))
	}
	for i, c := range p.InFlight {
		add("InFlight", i, store.InFlight, c, thing{look: lookInFlight(c)})
	}
	for i, l := range p.Lockers {
		add("Lockers", i, store.Lock, l, lockerThing(l))
	}
	for i, g := range p.Guards {
		add("Guards", i, store.Guard, g, guardThing(g))
	}
	for i, s := range p.Stocks {
		add("Stocks", i, store.Stock, s, stockThing(s))
	}
	return added, errors.Join(faults...)
}

// nameOf is the name of a primitive that its constructor has made: Name panics on any other.
func nameOf(of interface{ Name() string }) (name string, made bool) {
	defer func() { _ = recover() }()
	return of.Name(), true
}

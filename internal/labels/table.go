package labels

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/neap-go/neap/core/store"
)

// What there is room for.
const (
	MostPolicies = 20  // of each name, beside those that its limiters were made with
	MostOwn      = 200 // of each name, that its limiters were made with
	MostNames    = 200 // of each primitive
)

// Table has one entry for the events of equal labels, such as a counter. It is safe for concurrent use. Finding an
// entry that exists takes no lock and no memory.
type Table[T any] struct {
	make func(Labels) T
	now  atomic.Pointer[contents[T]]
	mu   sync.Mutex // of those that replace the contents
}

// contents are never changed, but replaced.
type contents[T any] struct {
	made     map[Labels]T
	names    map[name]bool
	policies map[policy]bool
	taken    map[store.Primitive]int // names
	filled   map[name]int            // policies that limiters of the name were not made with
	own      map[name]int            // policies that they were made with
}

type name struct {
	primitive store.Primitive
	name      string
}

type policy struct {
	of   name
	name string
}

// NewTable makes a table whose entries make makes, one at a time and once for each labels.
func NewTable[T any](make func(Labels) T) *Table[T] {
	t := &Table[T]{make: make}
	t.now.Store(&contents[T]{
		made: map[Labels]T{}, names: map[name]bool{}, policies: map[policy]bool{},
		taken: map[store.Primitive]int{}, filled: map[name]int{}, own: map[name]int{},
	})
	return t
}

// Of is the entry of an event.
func (t *Table[T]) Of(e *store.Event) T {
	l := Of(e)
	now := t.now.Load()
	if one, is := now.made[l]; is {
		return one
	}
	if now.place(&l) {
		if one, is := now.made[l]; is {
			return one
		}
	}
	return t.add(Of(e))
}

// place writes Other where there is no room. It reports whether everything else is known.
func (c *contents[T]) place(l *Labels) (known bool) {
	of := name{l.Primitive, l.Name}
	if !c.names[of] {
		if c.taken[l.Primitive] < MostNames {
			return false
		}
		l.Name = Other
		of.name = Other
	}
	if l.Policy == "" || c.policies[policy{of, l.Policy}] {
		return true
	}
	if c.filled[of] < MostPolicies {
		return false
	}
	l.Policy = Other
	return true
}

func (t *Table[T]) add(l Labels) T {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := t.now.Load().clone()
	if !next.place(&l) {
		of := next.admit(l.Primitive, l.Name)
		l.Name = of.name
		if !next.place(&l) {
			next.policies[policy{of, l.Policy}] = true
			next.filled[of]++
		}
	}
	one, is := next.made[l]
	if !is {
		one = t.make(l)
		next.made[l] = one
	}
	t.now.Store(next)
	return one
}

// admit gives a name room, if there is any, and returns it or Other.
func (c *contents[T]) admit(of store.Primitive, called string) name {
	own := name{of, called}
	switch {
	case c.names[own]:
		return own
	case c.taken[of] >= MostNames:
		return name{of, Other}
	}
	c.names[own] = true
	c.taken[of]++
	return own
}

// keep gives room to the policies that a limiter of this name was made with. It gives none to those of a name without
// room: otherwise thousands of names with a policy each would have thousands of policies.
func (c *contents[T]) keep(of name, policies []string) {
	if of.name == Other {
		return
	}
	for _, p := range policies {
		one := policy{of, p}
		if c.policies[one] || c.own[of] >= MostOwn {
			continue
		}
		c.policies[one] = true
		c.own[of]++
	}
}

func (c *contents[T]) clone() *contents[T] {
	return &contents[T]{
		made: maps.Clone(c.made), names: maps.Clone(c.names), policies: maps.Clone(c.policies),
		taken: maps.Clone(c.taken), filled: maps.Clone(c.filled), own: maps.Clone(c.own),
	}
}

// Read returns the gauges of a store. Primitives of one name are one gauge, and so are all primitives without room.
// From then on, the policies that limiters of a name with room were made with have room, too. Each server has a gauge.
func (t *Table[T]) Read(st *store.Store) []store.Gauge {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := t.now.Load().clone()
	var all []store.Gauge
	at := map[name]int{}
	for _, g := range st.Gauges() {
		of := name{g.Primitive, g.Name}
		if g.Primitive != store.Server {
			of = next.admit(g.Primitive, g.Name)
			g.Name = of.name
		}
		next.keep(of, g.Policies)
		i, is := at[of]
		if !is {
			at[of] = len(all)
			all = append(all, g)
			continue
		}
		sum := &all[i]
		sum.Active += g.Active
		sum.Waiting += g.Waiting
		sum.Background += g.Background
		sum.Open = sum.Open || g.Open
	}
	t.now.Store(next)
	return all
}

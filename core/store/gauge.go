package store

import (
	"cmp"
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/sony/gobreaker/v2"
)

// Gauge reports what a primitive or a server of a store is doing now, as far as this
// process knows. It is for metrics and dashboards, and complements [Event]. It has no key
// and no subject.
type Gauge struct {
	// Primitive says what the gauge is about.
	Primitive Primitive
	// Name is the name that New was given. For a server it is the
	// address, or all addresses of the client while the servers of a cluster are not
	// known.
	Name string
	// Policies are the policies that a limiter was made with, as [Event.Policy] names
	// them.
	Policies []string
	// Active is how many slots, locks, claims or reservations this process holds.
	Active int
	// Waiting is how many callers wait for permits or for a lock.
	Waiting int
	// Background is how many grants the primitive is taking back, and how many
	// conclusions it is repeating, in the background because Redis did not answer.
	Background int
	// Open reports whether a breaker holds calls back because Redis does not answer. For
	// a limit, or for requests in flight, these are its own calls. For a server they are
	// calls to that server with any budget.
	Open bool
	// Failing is how long a server has not answered, since the first of those calls. An
	// answer makes it 0 if no call has failed for a second, or for a minute while Open is
	// true. Without an answer, it is 0 a minute after the last failure.
	Failing time.Duration
	// Lost reports whether the server is lost: it is true from the event [Lost] to the
	// event [Back]. It is false if Failing is 0.
	Lost bool
}

// Gauges returns a gauge for each limiter, locker, guard and stock that was made on the
// store and is still in use, in the order in which they were made. After these comes one
// for each server that was asked, by address. What With, As, WithWait and WithFail return
// belongs to what it was made from. A primitive that decides in process has no gauge.
//
// Gauges is safe for concurrent use and sends nothing. The figures are read one after the
// other, so two of them may differ by a call. A nil or zero store has no gauges.
func (s *Store) Gauges() []Gauge {
	if !s.made() {
		return nil
	}
	return append(s.gauges.read(), s.nodes.gauges()...)
}

// Register makes Gauges call read, and Drain call drain unless it is nil, for as long as
// anything uses of. The functions must not keep of alive. The library's own packages use
// it. A nil store registers nothing.
func Register[T any](s *Store, of *T, read func(*T) Gauge, drain func(*T, context.Context) error) {
	if !s.made() {
		return
	}
	own := weak.Make(of)
	number := s.gauges.add(registered{
		read: func() (g Gauge, used bool) {
			if of := own.Value(); of != nil {
				return read(of), true
			}
			return Gauge{}, false
		},
		drain: func(ctx context.Context) error {
			if of := own.Value(); of != nil && drain != nil {
				return drain(of, ctx)
			}
			return nil
		},
	})
	runtime.AddCleanup(of, s.gauges.remove, number)
}

// registered is a primitive of a store.
type registered struct {
	read  func() (g Gauge, used bool)
	drain func(context.Context) error
}

// gauges are the primitives of a store.
type gauges struct {
	mu   sync.Mutex
	last int
	all  map[int]registered
}

func (g *gauges) add(one registered) (number int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all == nil {
		g.all = map[int]registered{}
	}
	g.last++
	g.all[g.last] = one
	return g.last
}

func (g *gauges) remove(number int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.all, number)
}

// entries returns the primitives in the order in which they were made. They are called
// without the mutex, because they take their own.
func (g *gauges) entries() (all []registered) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(g.all)) {
		all = append(all, g.all[number])
	}
	return all
}

func (g *gauges) read() (all []Gauge) {
	for _, e := range g.entries() {
		if one, used := e.read(); used {
			all = append(all, one)
		}
	}
	return all
}

// gauges returns the gauges of the servers that were asked.
func (n *nodes) gauges() []Gauge {
	n.mu.RLock()
	defer n.mu.RUnlock()
	all := make([]Gauge, 0, len(n.all))
	for _, one := range n.all {
		g := Gauge{Primitive: Server, Name: one.name}
		g.Failing, g.Lost = one.failing()
		for _, b := range n.breakers {
			g.Open = g.Open || b.node == one && n.holdsBack(b)
		}
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b Gauge) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// holdsBack reports whether a breaker holds calls back. One of its calls must have failed
// within the last minute.
func (n *nodes) holdsBack(b *breaker) bool {
	return b.State() != gobreaker.StateClosed && n.now()-b.failed.Load() < int64(forgotten)
}

// failing returns the time since the first of the calls without an answer, and whether the
// node is lost. It returns 0 and false if the last of these calls was more than a minute
// ago.
func (n *node) failing() (since time.Duration, lost bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now, first := n.now(), n.first.Load()
	if first == 0 || now-n.latest >= int64(forgotten) {
		return 0, false
	}
	return time.Duration(now - first), n.lost
}

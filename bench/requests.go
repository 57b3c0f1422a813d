package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// The ways of asking a guard, and of asking for stock.
const (
	first    way = "first"
	replayed way = "replayed"
	sold     way = "sold"
	refused  way = "refused"
)

// known is how many keys were done before they are replayed.
const known = 64

// oneCore is held while this process is limited to one core.
var oneCore sync.Mutex

// callbacks have client and server share one core.
func (s *server) callbacks(ctx context.Context, r *results) error {
	oneCore.Lock()
	defer oneCore.Unlock()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	return requests([]way{first, replayed}, callbacks)(s, ctx, r)
}

// requests measures each group for itself. The first contestant of a group is its floor.
// The first way is of keys that were never used, the second of keys that were.
func requests(ways []way, groups ...func() []contestant) func(*server, context.Context, *results) error {
	return func(s *server, ctx context.Context, r *results) error {
		for _, group := range groups {
			r.contestants = append(r.contestants, group()...)
			err := s.measure(ctx, r, group(), r.plan.cells(0, ways...), func(c contestant, e *env) (slicer, error) {
				return s.requester(ctx, r, ways, c, e)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// requester finds out what is sent and kept for a request, and tries the promises.
func (s *server) requester(ctx context.Context, r *results, ways []way, c contestant, e *env) (slicer, error) {
	g, err := c.guard(ctx, e)
	if err != nil {
		return nil, err
	}
	f := facts{sends: map[way]sent{}}
	for i, way := range ways {
		call, err := g.prepare(ctx, e, i == 0)
		if err != nil {
			return nil, err
		}
		if f.sends[way], err = s.probe(ctx, e.db, func(int) error { return call(ctx, 0) }); err != nil {
			return nil, err
		}
	}
	left, err := state(ctx, e.rdb)
	for _, v := range left {
		f.bytes += float64(v.bytes) / float64(len(left))
	}
	if err == nil && c.middleware != nil {
		f.promises, err = s.tryPromises(ctx, c, e.db)
	}
	r.facts[c.name] = f
	return func(ctx context.Context, at cell, length time.Duration) (figures, error) {
		call, err := g.prepare(ctx, e, at.way == ways[0])
		if err != nil {
			return nil, err
		}
		ran := g.ran()
		figures, err := s.slice(ctx, load{at.goroutines, length, call, f.sends[at.way].share, false})
		return figures, errors.Join(err, g.check(g.ran()-ran, figures[calls], at.way == ways[0]))
	}, err
}

// prepare does some keys, on an empty database, and tells how to ask.
func (g *guard) prepare(ctx context.Context, e *env, newKeys bool) (func(context.Context, int) error, error) {
	if err := e.empty(ctx); err != nil {
		return nil, err
	}
	if g.fill != nil {
		if err := g.fill(ctx); err != nil {
			return nil, err
		}
	}
	done := make([]string, known)
	for i := range done {
		done[i] = newKey()
		if err := g.first(ctx, done[i]); err != nil {
			return nil, err
		}
	}
	if newKeys {
		return func(ctx context.Context, _ int) error { return g.first(ctx, newKey()) }, nil
	}
	return func(ctx context.Context, _ int) error { return g.replay(ctx, done[rand.IntN(known)]) }, nil
}

// ran is how often the handler ran.
func (g *guard) ran() float64 {
	if g.runs == nil {
		return 0
	}
	return float64(g.runs())
}

// check finds a handler that ran where it must not, or did not run where it must.
func (g *guard) check(ran, calls float64, newKeys bool) error {
	if !newKeys && !g.unlocked {
		calls = 0
	}
	if g.runs != nil && ran != calls {
		return fmt.Errorf("%w: the handler ran %.0f times, not %.0f", errWrong, ran, calls)
	}
	return nil
}

// serials make keys that were never used before.
var serials atomic.Uint64

// newKey has the form of a UUID.
func newKey() string {
	n := serials.Add(1)
	return fmt.Sprintf("0198c2f5-7d1c-7c7e-%04x-%012x", n>>48, n&(1<<48-1))
}

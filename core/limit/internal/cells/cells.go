// Package cells keeps the state of a limiter in this process: what was taken, bans, and what Redis
// last reported. It decides by the algorithms of package kind, and asks nobody.
package cells

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/limit/internal/cache"
	"github.com/neap-go/neap/core/limit/internal/kind"
)

// entriesPerState is how many entries of sliding logs are kept on average for each state.
const entriesPerState = 8

// Cells are the states of the subjects of a limiter and of all limiters that With made from it.
type Cells struct {
	space keyspace.Space
	began time.Time // its clock is monotonic from here on
	most  int
	seeds *cache.Cache[*seed] // what Redis last reported; nil if that is not kept

	mu      sync.Mutex
	cells   *simplelru.LRU[stateKey, *kind.Cell]
	entries int                                    // of all sliding logs together
	bans    bansByEnd                              // a flood of subjects evicts none of them
	denials *simplelru.LRU[stateKey, *kind.Record] // counted, and no ban has begun yet
	lifts   *simplelru.LRU[stateKey, int64]        // when bans were lifted here, in microseconds

	known atomic.Int64 // how many bans there are
}

// stateKey is a subject and a policy as they appear in a Redis key, so its length is bounded.
type stateKey struct{ subject, tail string }

// New returns cells for so many states. With seeds, it keeps what Redis last reported.
func New(space keyspace.Space, size int, seeds bool) *Cells {
	b := &Cells{space: space, began: time.Now(), most: size}
	cells, err := simplelru.NewLRU(size, func(_ stateKey, c *kind.Cell) { b.entries -= c.Entries() })
	lifts, fault := simplelru.NewLRU[stateKey, int64](size, nil)
	denials, wrong := simplelru.NewLRU[stateKey, *kind.Record](size, nil)
	if err := errors.Join(err, fault, wrong); err != nil {
		panic("limit: " + err.Error()) // only if the size is below 1, which the options refuse
	}
	b.cells, b.denials, b.lifts = cells, denials, lifts
	b.bans = bansByEnd{room: size, byKey: map[stateKey]*banEntry{}}
	if seeds {
		b.seeds = cache.New[*seed](size)
	}
	return b
}

func (b *Cells) now() int64 {
	return b.began.UnixMicro() + time.Since(b.began).Microseconds()
}

// at returns a time by the clock of now.
func (b *Cells) at(t time.Time) int64 {
	return b.began.UnixMicro() + t.Sub(b.began).Microseconds()
}

// Take decides a request, for one of n instances. It returns when, by its own clock.
func (b *Cells) Take(set *kind.Set, of *kind.Request, n int64) (at int64) {
	subject := b.space.Subject(of.Subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	var few [kind.Few]*kind.Cell
	cells := b.of(set, subject, few[:0])
	before := entries(cells)
	at = b.now()
	resumed := n > 0 && b.resume(set, of.Subject, cells, at)
	charged := set.Take(cells, n, at, of.Asks(), of.Readings)
	b.entries += entries(cells) - before
	for i, r := range set.Rules {
		if resumed || charged && !of.Readings[i].Refused() {
			b.keep(stateKey{subject, r.Tail}, cells[i])
		}
	}
	b.keepRecords(subject, set, cells)
	for b.entries > b.most*entriesPerState && b.cells.Len() > len(set.Rules) {
		b.cells.RemoveOldest()
	}
	return at
}

func (b *Cells) keep(key stateKey, c *kind.Cell) {
	if !b.cells.Contains(key) {
		key.subject = strings.Clone(key.subject) // it may be a part of a large string
	}
	b.cells.Add(key, c)
}

// of appends a subject's cells to few. A rule without a stored cell gets a new one.
func (b *Cells) of(set *kind.Set, subject string, few []*kind.Cell) []*kind.Cell {
	for _, r := range set.Rules {
		c, ok := b.cells.Get(stateKey{subject, r.Tail})
		if !ok {
			c = new(kind.Cell)
		}
		few = append(few, c)
	}
	for _, bar := range set.Bars {
		*bar.Record(few) = b.recordOf(subject, bar.Ban)
	}
	return few
}

// entries returns how many entries the logs have.
func entries(cells []*kind.Cell) (n int) {
	for _, c := range cells {
		n += c.Entries()
	}
	return n
}

// Refund gives back what a request took that was decided here at that time. It reports whether it
// gave anything back.
func (b *Cells) Refund(set *kind.Set, of *kind.Request, at int64) (given bool) {
	b.change(set, of.Subject, func(_ string, cells []*kind.Cell, now int64) {
		given = set.Refund(cells, now, of.Cost, of.Readings, kind.Moment{Soonest: at, Latest: at})
	})
	return given
}

// Settle does in Go what limits/settle.lua does: it replaces the cost of a request that was decided
// here at that time. It returns what the rules report then, and the most that one of them forgave.
func (b *Cells) Settle(set *kind.Set, of *kind.Request, at, actual int64) (readings []kind.Reading, forgiven int64) {
	readings = make([]kind.Reading, len(set.Rules))
	b.change(set, of.Subject, func(subject string, cells []*kind.Cell, now int64) {
		forgiven = set.Settle(cells, now, of.Cost, actual, of.Readings, kind.Moment{Soonest: at, Latest: at}, readings)
		for i, r := range set.Rules {
			b.keep(stateKey{subject, r.Tail}, cells[i])
		}
	})
	return readings, forgiven
}

// change calls by with the cells of a subject.
func (b *Cells) change(set *kind.Set, subject string, by func(subject string, cells []*kind.Cell, now int64)) {
	subject = b.space.Subject(subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	var few [kind.Few]*kind.Cell
	cells := b.of(set, subject, few[:0])
	before := entries(cells)
	by(subject, cells, b.now())
	b.entries += entries(cells) - before
}

// Reset forgets what a subject has taken. It reports whether anything was still in use. It must
// look, because a cell stays until its room is needed or it is asked for again.
func (b *Cells) Reset(set *kind.Set, subject string) (found bool) {
	subject = b.space.Subject(subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for _, r := range set.Rules {
		key := stateKey{subject, r.Tail}
		if c, ok := b.cells.Peek(key); ok {
			before := c.Entries()
			r.Advance(c, now)
			b.entries += c.Entries() - before
			found = r.Figures(r.Read(c, 0), 0).ResetAfter > 0 || found
			b.cells.Remove(key)
		}
	}
	return found
}

// Forget forgets what Redis reported about a subject that was reset.
func (b *Cells) Forget(set *kind.Set, subject string) {
	for i := 0; b.seeds != nil && i < len(set.Rules); i++ {
		b.seeds.Remove(subject, set.Rules[i].Tail)
	}
}

// Len returns how many states there are, without bans.
func (b *Cells) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cells.Len()
}

// Known are the subjects that cells know something of.
type Known struct{ States, Bans, Lifted, Seeds []string }

// Known is for tests of what a process keeps.
func (b *Cells) Known() (all Known) {
	b.mu.Lock()
	defer b.mu.Unlock()
	subjects := func(keys []stateKey) (all []string) {
		for _, key := range keys {
			all = append(all, key.subject)
		}
		return all
	}
	all = Known{States: subjects(b.cells.Keys()), Lifted: subjects(b.lifts.Keys()), Bans: subjects(slices.Collect(maps.Keys(b.bans.byKey)))}
	if b.seeds != nil {
		all.Seeds = b.seeds.Subjects()
	}
	return all
}

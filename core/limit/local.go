package limit

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// entriesPerState is how many entries of sliding logs are kept on average for each state
// that MaxLocal allows.
const entriesPerState = 8

// local keeps the state in this process and decides by the models.
type local struct {
	began time.Time // its clock is monotonic from here on
	most  int

	mu      sync.Mutex
	cells   *simplelru.LRU[localKey, *cell]
	entries int                               // of all sliding logs together
	records bansByEnd                         // of bans; a flood of subjects evicts none of them
	denials *simplelru.LRU[localKey, *record] // counted, and no ban has begun yet
	lifts   *simplelru.LRU[localKey, int64]   // when bans were lifted here, in microseconds

	known atomic.Int64 // how many records of bans there are
}

// localKey is a subject and a policy as they appear in a Redis key, so its length is
// bounded.
type localKey struct{ subject, tail string }

func newLocal(size int) *local {
	b := &local{began: time.Now(), most: size}
	cells, err := simplelru.NewLRU(size, func(_ localKey, c *cell) { b.entries -= len(c.log) })
	lifts, fault := simplelru.NewLRU[localKey, int64](size, nil)
	denials, wrong := simplelru.NewLRU[localKey, *record](size, nil)
	if err := errors.Join(err, fault, wrong); err != nil {
		panic("limit: " + err.Error()) // only if the size is below 1, which withDefaults refuses
	}
	b.cells, b.denials, b.lifts = cells, denials, lifts
	b.records = bansByEnd{room: size, byKey: map[localKey]*banEntry{}}
	return b
}

func (b *local) now() int64 {
	return b.began.UnixMicro() + time.Since(b.began).Microseconds()
}

// at returns a time by the clock of now.
func (b *local) at(t time.Time) int64 {
	return b.began.UnixMicro() + t.Sub(b.began).Microseconds()
}

func (b *local) take(l *Limiter, g *grant) {
	subject := l.space.Subject(g.subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	var few [fewRules]*cell
	cells := b.cellsOf(l, subject, few[:0])
	before := entries(cells)
	g.at = b.now()
	n := l.among()
	resumed := n > 0 && l.seeds.resume(l, g.subject, cells, g.at)
	charged := takeShare(l.rules, cells, n, g.at, g.asks(), g.readings)
	b.entries += entries(cells) - before
	for i, r := range l.rules {
		if resumed || charged && !g.readings[i].refused() {
			b.keep(localKey{subject, r.id().tail}, cells[i])
		}
	}
	b.keepRecords(subject, l.rules, cells)
	for b.entries > b.most*entriesPerState && b.cells.Len() > len(l.rules) {
		b.cells.RemoveOldest()
	}
}

func (b *local) keep(key localKey, c *cell) {
	if !b.cells.Contains(key) {
		key.subject = strings.Clone(key.subject) // it may be a part of a large string
	}
	b.cells.Add(key, c)
}

// cellsOf appends a subject's cells to few. A rule without a stored cell gets a new one.
func (b *local) cellsOf(l *Limiter, subject string, few []*cell) []*cell {
	for _, r := range l.rules {
		c, ok := b.cells.Get(localKey{subject, r.id().tail})
		if !ok {
			c = new(cell)
		}
		c.ban = b.recordOf(subject, r)
		few = append(few, c)
	}
	return few
}

// entries returns how many entries the logs have.
func entries(cells []*cell) (n int) {
	for _, c := range cells {
		n += len(c.log)
	}
	return n
}

// refund reports whether anything was given back.
func (b *local) refund(l *Limiter, g *grant) (given bool) {
	b.change(l, g, func(cells []*cell, now int64) { given = refundModel(l.rules, cells, now, g, moment{g.at, g.at}) })
	return given
}

// change calls by with the cells of a grant's subject.
func (b *local) change(l *Limiter, g *grant, by func(cells []*cell, now int64)) {
	subject := l.space.Subject(g.subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	var few [fewRules]*cell
	cells := b.cellsOf(l, subject, few[:0])
	before := entries(cells)
	by(cells, b.now())
	b.entries += entries(cells) - before
}

// refundModel does in Go what limits/settle.lua does without a marker.
func refundModel(rules []rule, cells []*cell, now int64, g *grant, at moment) (given bool) {
	for i, r := range rules {
		if reading := g.readings[i]; !reading.refused() {
			r.advance(cells[i], now)
			cost := counts(r, r.id().costs(g.cost), int64(reading.instances))
			given = r.refund(cells[i], r.term(reading), cost, cost, at) || given
		}
	}
	return given
}

func (b *local) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cells.Len()
}

package console

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/store"
)

const (
	shown   = 60  // seconds of the timeline
	places  = 64  // in which a row keeps them: a second is not written over while it is shown
	maxRows = 100 // that are told apart at once, besides one "other" of each primitive
)

// series is what a second counts: an outcome, as the page names it.
type series uint8

// The outcomes of events, and what becomes of two of them without Redis or by a ban.
var names = [...]string{
	"granted", "denied", "banned", "failed", "degraded granted", "degraded denied", "shadow denied",
	"held", "replayed", "mismatched", "in doubt", "no result", "completed", "abandoned", "refused", "disagreed", "lost", "overtaken",
}

var numbers = func() map[string]series {
	all := map[string]series{}
	for i, name := range names {
		all[name] = series(i)
	}
	return all
}()

// seriesOf is what an event counts as. Calls whose own context ended count as nothing.
func seriesOf(e *store.Event) (s series, counts bool) {
	name := string(e.Outcome)
	switch decided := e.Outcome == store.Granted || e.Outcome == store.Denied; {
	case decided && e.Class != nil:
		name = "degraded " + name
	case e.Banned:
		name = "banned"
	}
	s, counts = numbers[name]
	return s, counts
}

// row is one line of the timeline: what became of the calls that one policy decided, or of
// those of one locker, guard or stock.
type row struct {
	mu      sync.Mutex // of those that begin a second
	last    atomic.Int64
	seconds [places]second
}

type second struct {
	at     atomic.Int64
	counts [len(names)]atomic.Uint32
}

// rowKey says which row it is. That of all others has the primitive alone.
type rowKey struct {
	primitive    store.Primitive
	name, policy string
}

func (r *row) add(now int64, s series) {
	place := &r.seconds[now%places]
	if place.at.Load() != now {
		r.begin(place, now)
	}
	place.counts[s].Add(1)
}

func (r *row) begin(place *second, now int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if place.at.Load() >= now {
		return
	}
	for i := range place.counts {
		place.counts[i].Store(0)
	}
	place.at.Store(now)
	r.last.Store(now)
}

// read is what each second since from has counted, without zeros.
func (r *row) read(from, now int64) map[int64]map[string]uint32 {
	all := map[int64]map[string]uint32{}
	for at := max(from, 0); at <= now; at++ {
		place := &r.seconds[at%places]
		if place.at.Load() != at {
			continue
		}
		counts := map[string]uint32{}
		for i := range place.counts {
			if n := place.counts[i].Load(); n > 0 {
				counts[names[i]] = n
			}
		}
		if len(counts) > 0 {
			all[at] = counts
		}
	}
	return all
}

// timeline counts the events of a store, by the second. It has no goroutine: a second begins
// with its first event. Its memory is that of maxRows rows, of 5 kB each.
type timeline struct {
	made   time.Time
	rows   atomic.Pointer[map[rowKey]*row] // replaced as a whole, so that an event takes no lock
	others map[store.Primitive]*row
	mu     sync.Mutex // of those that replace rows
	swept  atomic.Int64
}

func newTimeline() *timeline {
	t := &timeline{made: time.Now(), others: map[store.Primitive]*row{}}
	t.rows.Store(&map[rowKey]*row{})
	for _, p := range []store.Primitive{store.Limit, store.InFlight, store.Lock, store.Guard, store.Stock} {
		t.others[p] = new(row)
	}
	return t
}

// now is the second under way, counted from 1.
func (t *timeline) now() int64 { return int64(time.Since(t.made)/time.Second) + 1 }

// observe is a store.Observer.
func (t *timeline) observe(_ context.Context, e store.Event) {
	s, counts := seriesOf(&e)
	other, known := t.others[e.Primitive]
	if !counts || !known {
		return
	}
	now := t.now()
	r := (*t.rows.Load())[rowKey{e.Primitive, e.Name, e.Policy}]
	if r == nil {
		r = cmp.Or(t.make(rowKey{e.Primitive, e.Name, e.Policy}, now), other)
	}
	r.add(now, s)
}

// make makes a row, and returns nil if there is no room. Once a second it makes room: it drops the rows without an event
// in the time that is shown.
func (t *timeline) make(key rowKey, now int64) *row {
	if len(*t.rows.Load()) >= maxRows && t.swept.Load() == now {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	rows := *t.rows.Load()
	if r := rows[key]; r != nil {
		return r
	}
	rows = maps.Clone(rows)
	if len(rows) >= maxRows {
		t.swept.Store(now)
		maps.DeleteFunc(rows, func(_ rowKey, r *row) bool { return now-r.last.Load() >= shown })
		if len(rows) >= maxRows {
			return nil
		}
	}
	r := new(row)
	r.last.Store(now)
	rows[key] = r
	t.rows.Store(&rows)
	return r
}

// line is a row as the page is told of it.
type line struct {
	Primitive store.Primitive `json:"primitive"`
	Name      string          `json:"name"`
	Policy    string          `json:"policy"`
	// Other says that the line counts whatever has none of its own.
	Other   bool                        `json:"other,omitempty"`
	Seconds map[int64]map[string]uint32 `json:"seconds"`
}

// read returns the lines in which something happened since from.
func (t *timeline) read(from, now int64) []line {
	all := []line{}
	add := func(l line, r *row) {
		if l.Seconds = r.read(from, now); len(l.Seconds) > 0 {
			all = append(all, l)
		}
	}
	for key, r := range *t.rows.Load() {
		add(line{Primitive: key.primitive, Name: key.name, Policy: key.policy}, r)
	}
	for p, r := range t.others {
		add(line{Primitive: p, Other: true}, r)
	}
	slices.SortFunc(all, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.Primitive, b.Primitive), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Policy, b.Policy))
	})
	return all
}

// lines are the policies with an event in the time that is shown, by primitive and name.
func (t *timeline) lines(now int64) map[id][]string {
	all := map[id][]string{}
	for key, r := range *t.rows.Load() {
		if now-r.last.Load() < shown {
			which := id{key.primitive, key.name}
			all[which] = append(all[which], key.policy)
		}
	}
	for _, policies := range all {
		slices.Sort(policies)
	}
	return all
}

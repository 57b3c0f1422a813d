// Package denials remembers denials, so that a process repeats them without asking Redis.
package denials

import (
	"hash/maphash"
	"slices"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/limit/internal/cache"
	"github.com/neap-go/neap/core/limit/internal/kind"
)

// Memory has the denials of a limiter and of all limiters that With made from it.
//
// A denial holds for its RetryAfter, counted from when the request was sent, minus a
// margin for clocks. Until then there is no room for the cost: the takes of others leave
// less room, and the passing time frees no more. A refund or a reset can free room. If
// this process makes it, the denials of the subject end when it is answered. If another
// process makes it, it takes effect when the denial's longest time, most, has passed.
type Memory struct {
	began   time.Time
	most    int64 // how long a denial holds at most
	denials *cache.Cache[*denial]
	seed    maphash.Seed
	epochs  [4096]atomic.Uint32 // one for all subjects with the same hash; a refund or reset increments it
}

// denial is immutable.
type denial struct {
	cost      int64
	at, until int64
	epoch     uint32
	readings  []kind.Reading
}

// New returns a memory for room denials. Each holds for most, at the most. It returns nil if most is
// 0.
func New(most time.Duration, room int) *Memory {
	if most == 0 {
		return nil
	}
	return &Memory{began: time.Now(), most: int64(most), denials: cache.New[*denial](room), seed: maphash.MakeSeed()}
}

func (m *Memory) now() int64 { return int64(time.Since(m.began)) }

func (m *Memory) epoch(subject string) *atomic.Uint32 {
	return &m.epochs[maphash.String(m.seed, subject)%uint64(len(m.epochs))]
}

// Recall appends to into what the last answer says now, aged, if a denial is remembered that covers
// the cost. Otherwise it returns nil.
func (m *Memory) Recall(set *kind.Set, subject string, cost int64, into []kind.Reading) []kind.Reading {
	now := m.now()
	was, known := m.denials.Find(subject, set.Signature)
	if !known || cost < was.cost || now >= was.until || m.epoch(subject).Load() != was.epoch {
		return nil
	}
	for i, r := range set.Rules {
		aged, ok := r.Recall(was.readings[i], time.Duration(now-was.at), was.cost, kind.Wants(cost).Of(r))
		if !ok {
			return nil
		}
		into = append(into, aged)
	}
	return into
}

// Epoch returns what Keep needs. Call it before you ask Redis.
func (m *Memory) Epoch(subject string) (now int64, epoch uint32) {
	return m.now(), m.epoch(subject).Load()
}

// Keep remembers a denial. The request was sent at that time, or later.
func (m *Memory) Keep(set *kind.Set, of *kind.Request, at int64, epoch uint32) {
	holds := int64(0)
	for i, r := range set.Rules {
		switch {
		case r.Shadow:
		case of.Readings[i].Denied && !set.Bans: // or else every denial is counted that is not by a ban
			wait := r.Figures(of.Readings[i], r.Costs(of.Cost)).RetryAfter - r.Tick
			holds = max(holds, int64(wait))
		}
	}
	for _, bar := range set.Bars {
		if !bar.Shadow {
			holds = max(holds, *bar.Left(of.Readings)*int64(time.Millisecond))
		}
	}
	until := at + min(int64(kind.Sure(time.Duration(holds))), m.most)
	if until <= m.now() {
		return
	}
	m.denials.Update(of.Subject, set.Signature, func(was *denial, known bool) (*denial, bool) {
		covered := known && was.cost < of.Cost && was.epoch == epoch && was.until > at // by the denial that is stored
		return &denial{of.Cost, at, until, epoch, slices.Clone(of.Readings)}, !covered
	})
}

// Changed ends what is remembered of a subject. On a nil memory it does nothing.
func (m *Memory) Changed(subject string) {
	if m != nil {
		m.epoch(subject).Add(1)
	}
}

// Subjects returns the subject of each denial.
func (m *Memory) Subjects() []string { return m.denials.Subjects() }

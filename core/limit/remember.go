package limit

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/internal/keyspace"
)

// memory has the denials of a limiter and of all limiters that With made from it.
//
// A denial holds for its RetryAfter, counted from when the request was sent, minus a
// margin for clocks. Until then there is no room for the cost: the takes of others leave
// less room, and the passing time frees no more. A refund or a reset can free room. If
// this process makes it, the denials of the subject end when it is answered. If another
// process makes it, it takes effect when the denial's longest time, most, has passed.
type memory struct {
	began  time.Time
	most   int64 // how long a denial holds at most
	grain  int64 // denialGrain
	room   int   // denials in a shard
	seed   maphash.Seed
	shards []shard
	epochs [4096]atomic.Uint32 // one for all subjects with the same hash; a refund or reset increments it
}

type shard struct {
	recent atomic.Pointer[denial] // the denial stored or found last; a busy subject needs no lock

	mu      sync.Mutex
	denials map[denialKey]*denial
}

// denialKey is the key of a denial: the subject, and the numbers of the policies.
type denialKey struct{ subject, signature string }

// denial is immutable.
type denial struct {
	key       denialKey
	cost      int64
	at, until int64
	epoch     uint32
	readings  []reading
}

// These are the margins for clocks: Redis counts times to live in milliseconds, and two
// clocks differ by at most a thousandth of an interval.
const (
	denialGrain = int64(time.Millisecond)
	denialDrift = 1000
)

// newMemory returns nil if nothing is to be remembered.
func newMemory(most time.Duration, room int) *memory {
	if most == 0 {
		return nil
	}
	m := &memory{began: time.Now(), most: int64(most), grain: denialGrain, seed: maphash.MakeSeed()}
	m.shards = make([]shard, min(64, room))
	m.room = room / len(m.shards)
	for i := range m.shards {
		m.shards[i].denials = map[denialKey]*denial{}
	}
	return m
}

func (m *memory) now() int64 { return int64(time.Since(m.began)) }

func (m *memory) of(subject string) (s *shard, epoch *atomic.Uint32) {
	h := maphash.String(m.seed, subject)
	return &m.shards[h%uint64(len(m.shards))], &m.epochs[h>>32%uint64(len(m.epochs))]
}

// recall decides by a remembered denial, if one covers the cost. The figures are those of
// the last answer, aged.
func (m *memory) recall(d *Decision, l *Limiter, subject string, cost int64) (known bool) {
	now := m.now()
	s, epoch := m.of(subject)
	was := s.find(denialKey{keyspace.Plain(subject), l.signature})
	if was == nil || cost < was.cost || now >= was.until || epoch.Load() != was.epoch {
		return false
	}
	var few [fewRules]reading
	readings := append(few[:0], was.readings...)
	for i, r := range l.rules {
		log, is := r.(*slidingLog)
		if is && cost > was.cost {
			return false // the reading does not say when the larger cost would be granted
		}
		readings[i] = foresee(r, readings[i], now-was.at, aRequest(cost).of(r))
		if is {
			readings[i] = log.atLeast(readings[i])
		}
	}
	l.judge(d, readings, aRequest(cost))
	d.grant = l.refused
	return !d.Allowed
}

// find returns a denial, or nil if there is none.
func (s *shard) find(key denialKey) *denial {
	if d := s.recent.Load(); d != nil && d.key == key {
		return d
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.denials[key]
	if d != nil {
		s.recent.Store(d)
	}
	return d
}

// epoch returns what keep needs. Call it before you ask Redis.
func (m *memory) epoch(subject string) (now int64, epoch uint32) {
	_, e := m.of(subject)
	return m.now(), e.Load()
}

// keep remembers a denial. The request was sent at at.
func (m *memory) keep(l *Limiter, g *grant, at int64, epoch uint32) {
	holds := int64(0)
	bans := slices.ContainsFunc(l.rules, hasBan) // then only bans are remembered, because every other denial is counted
	for i, r := range l.rules {
		switch {
		case r.id().shadow:
		case bans:
			holds = max(holds, g.readings[i].ban*int64(time.Millisecond))
		case g.readings[i].denied:
			wait := r.state(g.readings[i], r.id().costs(g.cost)).RetryAfter
			if b, is := r.(*bucket); is {
				wait -= b.tick // RetryAfter is rounded up to a tick
			}
			holds = max(holds, int64(wait))
		}
	}
	until := at + min(holds-m.grain-holds/denialDrift, m.most)
	if until <= m.now() {
		return
	}
	key := denialKey{keyspace.Plain(g.subject), l.signature}
	s, _ := m.of(g.subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.denials[key]
	if known && was.cost < g.cost && was.epoch == epoch && was.until > at {
		return // the denial that is stored covers this cost too
	}
	if known {
		key = was.key
	} else {
		if len(s.denials) >= m.room {
			s.forget(at)
		}
		key.subject = strings.Clone(key.subject) // it may be a part of a large string
	}
	d := &denial{key, g.cost, at, until, epoch, slices.Clone(g.readings)}
	s.denials[key] = d
	s.recent.Store(d)
}

// forget makes room. It looks at a few denials and forgets those that have ended. If none
// has, it forgets one.
func (s *shard) forget(now int64) {
	look, looked := min(8, len(s.denials)), 0
	for key, d := range s.denials {
		if looked++; d.until <= now || looked == look {
			delete(s.denials, key)
		}
		if looked == look {
			return
		}
	}
}

// changed ends what is remembered of a subject. On a nil memory it does nothing.
func (m *memory) changed(subject string) {
	if m != nil {
		_, epoch := m.of(subject)
		epoch.Add(1)
	}
}

package limit

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// memory has the denials of a limiter and of all that With has made of it.
//
// A denial holds until its RetryAfter has passed since it was asked for, less what clocks may
// differ by: until then the state has less room than the cost, for takes only fill it, and time empties
// it no faster. A refund or a reset may, so one in this process ends what is remembered of
// the subject when it is answered. Those of other processes take effect within the cap.
type memory struct {
	began  time.Time
	most   int64 // how long a denial holds at most
	grain  int64 // denialGrain
	room   int   // denials in a shard
	seed   maphash.Seed
	shards [64]shard
	epochs [4096]atomic.Uint32 // of the subjects with one hash
}

type shard struct {
	mu      sync.Mutex
	denials map[denialKey]denial
}

// denialKey tells denials by subject and numbers.
type denialKey struct{ subject, signature string }

type denial struct {
	cost      int64
	at, until int64
	epoch     uint32
	readings  []reading // immutable
}

// What the clocks of this process and of the server may differ by: the keys of Redis have a clock of
// milliseconds, and two clocks run apart by a thousandth at most.
const (
	denialGrain = int64(time.Millisecond)
	denialDrift = 1000
)

// newMemory is nil if nothing is to be remembered.
func newMemory(most time.Duration, room int) *memory {
	if most == 0 {
		return nil
	}
	m := &memory{began: time.Now(), most: int64(most), grain: denialGrain, seed: maphash.MakeSeed()}
	m.room = max(room/len(m.shards), 1)
	for i := range m.shards {
		m.shards[i].denials = map[denialKey]denial{}
	}
	return m
}

func (m *memory) now() int64 { return int64(time.Since(m.began)) }

func (m *memory) of(subject string) (s *shard, epoch *atomic.Uint32) {
	h := maphash.String(m.seed, subject)
	return &m.shards[h%uint64(len(m.shards))], &m.epochs[h>>32%uint64(len(m.epochs))]
}

// recall is the denial that a cost would get now, if it is known. The figures are what was read
// then, as old as it is.
func (m *memory) recall(l *Limiter, subject string, cost int64) (d Decision, known bool) {
	now := m.now()
	s, epoch := m.of(subject)
	s.mu.Lock()
	was, known := s.denials[denialKey{subject, l.signature}]
	s.mu.Unlock()
	if !known || cost < was.cost || now >= was.until || epoch.Load() != was.epoch {
		return Decision{}, false
	}
	var few [4]reading
	readings := append(few[:0], was.readings...)
	for i, r := range l.rules {
		readings[i] = r.age(readings[i], (now-was.at)/int64(time.Microsecond))
	}
	d = l.judge(readings, cost, false)
	d.grant = l.refused
	return d, true
}

// epoch is to be handed to keep: it is read before the decision is asked for.
func (m *memory) epoch(subject string) (now int64, epoch uint32) {
	_, e := m.of(subject)
	return m.now(), e.Load()
}

// keep remembers a denial that was asked for at that time.
func (m *memory) keep(l *Limiter, g *grant, at int64, epoch uint32) {
	holds := int64(0)
	for i, r := range l.rules {
		if g.readings[i].denied && !r.id().shadow {
			wait := r.state(g.readings[i], g.cost).RetryAfter
			if b, is := r.(*bucket); is {
				wait -= b.tick // the clock that it is rounded up to
			}
			holds = max(holds, int64(wait))
		}
	}
	until := at + min(holds-m.grain-holds/denialDrift, m.most)
	if until <= m.now() {
		return
	}
	key := denialKey{g.subject, l.signature}
	s, _ := m.of(g.subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.denials[key]
	if known && was.cost < g.cost && was.epoch == epoch && was.until > at {
		return // which denies this cost as well
	}
	if !known && len(s.denials) >= m.room {
		s.forget(at)
	}
	s.denials[key] = denial{g.cost, at, until, epoch, slices.Clone(g.readings)}
}

// forget makes room: it looks at a few denials, and forgets those that have ended, or one.
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

// changed ends what is remembered of a subject. It is nothing on a nil memory.
func (m *memory) changed(subject string) {
	if m != nil {
		_, epoch := m.of(subject)
		epoch.Add(1)
	}
}

package limit

import (
	"hash/maphash"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/neap-go/neap/core/internal/decisions"
	"github.com/neap-go/neap/core/internal/keyspace"
)

// seeds are what Redis last reported about the subjects that this process asked for
// lately. In an outage, the local state of a subject begins with it.
type seeds struct {
	hash   maphash.Seed
	room   int // seeds in a shard
	shards []seedShard
}

type seedShard struct {
	mu   sync.Mutex
	last *simplelru.LRU[localKey, *seed] // nil until it is needed
	_    [decisions.CacheLine - 16]byte
}

// seed is a reading, and when this process got it, by the local clock.
type seed struct {
	at int64
	reading
}

// There are at most mostShards shards. If there are several, each has at least leastSeeds
// seeds. All seeds of a subject are in one shard.
const (
	mostShards = 64
	leastSeeds = 64
)

func newSeeds(most int) *seeds {
	s := &seeds{hash: maphash.MakeSeed(), shards: make([]seedShard, max(min(mostShards, most/leastSeeds), 1))}
	s.room = most / len(s.shards)
	return s
}

// lock returns the shard of a subject, locked.
func (s *seeds) lock(subject string) *seedShard {
	shard := &s.shards[maphash.String(s.hash, subject)%uint64(len(s.shards))]
	shard.mu.Lock()
	if shard.last == nil {
		last, err := simplelru.NewLRU[localKey, *seed](s.room, nil)
		if err != nil {
			panic("limit: " + err.Error()) // only if the size is below 1, which withDefaults refuses
		}
		shard.last = last
	}
	return shard
}

// note stores what Redis reported about a subject.
func (s *seeds) note(l *Limiter, g *grant) {
	subject, at := keyspace.Plain(g.subject), l.local.now()
	shard := s.lock(subject)
	defer shard.mu.Unlock()
	for i, r := range l.rules {
		key := localKey{subject, r.id().tail}
		if last, known := shard.last.Get(key); known {
			*last = seed{at, g.readings[i]}
			continue
		}
		key.subject = strings.Clone(subject) // it may be a part of a large string
		shard.last.Add(key, &seed{at, g.readings[i]})
	}
}

// resume makes cells continue from what Redis last reported, if less is left there than
// in the cell. (The cell may know of takes in an outage before.) A seed is used once.
// resume reports whether any was used.
func (s *seeds) resume(l *Limiter, subject string, cells []*cell, now int64) (used bool) {
	subject = keyspace.Plain(subject)
	shard := s.lock(subject)
	defer shard.mu.Unlock()
	for i, r := range l.rules {
		key := localKey{subject, r.id().tail}
		last, known := shard.last.Peek(key)
		if !known {
			continue
		}
		shard.last.Remove(key)
		seeded := cell{ban: cells[i].ban}
		r.resume(&seeded, last.reading, last.at)
		r.advance(&seeded, now)
		r.advance(cells[i], now)
		if remains(r, &seeded) < remains(r, cells[i]) {
			*cells[i] = seeded
			used = true
		}
	}
	return used
}

func remains(r rule, c *cell) int64 { return r.state(r.read(c, 0), 0).Remaining }

// drop forgets what Redis reported about a subject that was reset. On nil seeds it does
// nothing.
func (s *seeds) drop(l *Limiter, subject string) {
	if s == nil {
		return
	}
	subject = keyspace.Plain(subject)
	shard := s.lock(subject)
	defer shard.mu.Unlock()
	for _, r := range l.rules {
		shard.last.Remove(localKey{subject, r.id().tail})
	}
}

func (b *bucket) resume(c *cell, r reading, at int64) {
	c.now, c.n = at/b.tick.Microseconds(), r.n[0]
}

func (w *window) resume(c *cell, r reading, at int64) {
	c.n, c.from = r.n[0], at/1000+r.n[1]-w.length
}

func (s *sliding) resume(c *cell, r reading, at int64) {
	c.m, c.n, c.from = r.n[0], r.n[1], at/1000+r.n[2]-s.length
}

func (w *calendar) resume(c *cell, r reading, at int64) {
	c.n, c.m = r.n[0], at/1000+r.n[1]
}

// resume assumes that all permits but the oldest leave with the youngest, because a
// reading does not say when each of them leaves.
func (l *slidingLog) resume(c *cell, r reading, at int64) {
	used := r.n[0]
	if used == 0 {
		return
	}
	c.log = make([]int64, used)
	for i := range c.log {
		c.log[i] = at + r.n[3] - l.length
	}
	c.log[0] = at + r.n[1] - l.length
	c.room = cap(c.log)
}

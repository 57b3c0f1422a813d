// Package cache keeps what a process knows about subjects, in a bounded number of entries. If there
// are more, what was used longest ago is forgotten. An entry competes with those of its shard alone,
// so one may be forgotten a little before the bound is reached.
package cache

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/neap-go/neap/core/internal/keyspace"
)

// Key is a subject, such as a user or a server, and what of it is known: the end of a policy's key,
// or the signature of a set. A cache is bounded in both together.
type Key struct{ Subject, Of string }

// Cache has entries of one kind. It is safe for concurrent use.
type Cache[V any] struct {
	seed   maphash.Seed
	room   int // entries in a shard
	shards []shard[V]
}

// shard has all entries of some subjects.
type shard[V any] struct {
	recent atomic.Pointer[entry[V]] // the entry found or put last; a busy subject needs no lock

	mu  sync.Mutex
	lru *simplelru.LRU[Key, *entry[V]] // nil until it is needed
	_   [64 - 24]byte                  // 64 is the least size of a cache line
}

type entry[V any] struct {
	key   Key
	value V
}

// There are at most mostShards shards. If there are several, each has at least leastEntries.
const (
	mostShards   = 256
	leastEntries = 64
)

// New returns a cache with room for so many entries, at least 1.
func New[V any](most int) *Cache[V] {
	c := &Cache[V]{seed: maphash.MakeSeed(), shards: make([]shard[V], max(min(mostShards, most/leastEntries), 1))}
	c.room = most / len(c.shards)
	return c
}

// Find returns the value of a key. It takes no lock for the key that was found last.
func (c *Cache[V]) Find(subject, of string) (value V, ok bool) {
	key := Key{keyspace.Plain(subject), of}
	s := c.shard(key.Subject)
	if e := s.recent.Load(); e != nil && e.key == key {
		return e.value, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lru == nil {
		return value, false
	}
	e, ok := s.lru.Get(key)
	if !ok {
		return value, false
	}
	s.recent.Store(e) // under the lock, so it cannot be forgotten meanwhile
	return e.value, true
}

// Update gives a key the value that change returns, unless keep is false. change gets the value that
// the key has, if ok. It runs under a lock, so it must not use the cache. Update returns what change returned.
func (c *Cache[V]) Update(subject, of string, change func(value V, ok bool) (changed V, keep bool)) (value V) {
	key := Key{keyspace.Plain(subject), of}
	s := c.shard(key.Subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lru == nil {
		lru, err := simplelru.NewLRU(c.room, func(_ Key, e *entry[V]) { s.recent.CompareAndSwap(e, nil) })
		if err != nil {
			panic("limit: " + err.Error()) // only if the room is below 1, which the options refuse
		}
		s.lru = lru
	}
	var was V
	e, ok := s.lru.Get(key)
	if ok {
		was = e.value
	}
	value, keep := change(was, ok)
	if !keep {
		return value
	}
	if !ok {
		key.Subject = strings.Clone(key.Subject) // it may be a part of a large string
	} else {
		key = e.key
	}
	e = &entry[V]{key, value}
	s.lru.Add(key, e)
	s.recent.Store(e)
	return value
}

// Put gives a key a value.
func (c *Cache[V]) Put(subject, of string, value V) {
	c.Update(subject, of, func(V, bool) (V, bool) { return value, true })
}

// Remove forgets a key. It returns the value that it had.
func (c *Cache[V]) Remove(subject, of string) (value V, ok bool) {
	key := Key{keyspace.Plain(subject), of}
	s := c.shard(key.Subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lru == nil {
		return value, false
	}
	e, ok := s.lru.Peek(key)
	if ok {
		s.lru.Remove(key)
		value = e.value
	}
	return value, ok
}

// Of returns all values of a subject. It looks at each entry of a shard.
func (c *Cache[V]) Of(subject string) (all []V) {
	subject = keyspace.Plain(subject)
	c.shard(subject).each(func(e *entry[V]) {
		if e.key.Subject == subject {
			all = append(all, e.value)
		}
	})
	return all
}

// Subjects returns the subject of each entry.
func (c *Cache[V]) Subjects() (all []string) {
	for i := range c.shards {
		c.shards[i].each(func(e *entry[V]) { all = append(all, e.key.Subject) })
	}
	return all
}

func (c *Cache[V]) shard(subject string) *shard[V] {
	return &c.shards[maphash.String(c.seed, subject)%uint64(len(c.shards))]
}

// each calls see with each entry, under the lock.
func (s *shard[V]) each(see func(e *entry[V])) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lru == nil {
		return
	}
	for _, e := range s.lru.Values() {
		see(e)
	}
}

package neaptest

import (
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// Lose has the clients lose Redis: their connections break, and each attempt to connect is
// refused at once. Without clients named all clients lose it, those that are yet to be made too. For a
// Redis that is silent instead, call Slow with an hour.
func (r *Redis) Lose(clients ...*redis.Client) {
	r.tb.Helper()
	r.play(clients, func(i *instance) { i.lost = true }, true)
}

// Slow has each reply reach the clients that much later than Redis wrote it; 0 ends that.
// Without clients named it is so for all. Redis itself is as fast as before: a call whose
// caller has given up has run. Pub/sub messages are late too.
func (r *Redis) Slow(by time.Duration, clients ...*redis.Client) {
	r.tb.Helper()
	r.play(clients, func(i *instance) { i.slow = by }, false)
}

// Pause stops the process of a client as far as Redis can tell: what the process writes is
// held, and so are the replies to it. [Redis.Restore] sends all of it, also what callers have given up
// meanwhile. Unlike those of a process that stands still, its goroutines and timers run on: it notices
// that Redis is silent, and that its leases end, when they do and not when it resumes.
func (r *Redis) Pause(client *redis.Client) {
	r.tb.Helper()
	r.play([]*redis.Client{client}, func(i *instance) { i.paused = true }, false)
}

// Fill has Redis refuse commands that would take memory, as one that is full and evicts
// nothing: with an error that begins with OOM. A script is refused at its first write if that takes memory,
// and never later, so those of neap that renew, conclude and give back still run.
func (r *Redis) Fill() { r.serve().full.Store(true) }

// LoseReply has the next script run and its reply lost: the connection breaks in its place. The
// replies to calls behind it on the same connection are lost as well. With the beginning of
// a file's name in neap's directory lua, such as "guard_begin", it is the next script of such a
// file; "" is any. Calls add up: two lose two replies.
func (r *Redis) LoseReply(script string) { r.serve().loseReply(script) }

// Failover has a replica take over that has none of the data: all connections break, the scripts are unknown, and
// every key is gone. A replica of yours lags by less, so this is the worst that a
// failover does.
func (r *Redis) Failover() {
	r.tb.Helper()
	r.mu.Lock()
	old := r.server
	r.server = newServer()
	r.server.full.Store(old.full.Load())
	r.mu.Unlock()
	r.play(nil, func(*instance) {}, true)
	old.end()
}

// Restore ends every scene of every client: Lose, Slow, Pause, Fill and LoseReply. What [Redis.Pause] and
// [Redis.Slow] held goes on now. neap may hold calls back for a quarter of a second more, until its
// breaker lets one through.
func (r *Redis) Restore() {
	r.tb.Helper()
	s := r.serve()
	s.full.Store(false)
	s.keepReplies()
	r.play(nil, func(i *instance) { i.scene = scene{} }, false)
}

func (r *Redis) serve() *server {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.server
}

// play changes the scene of some clients or, if none is named, of all that are and will be,
// and may break their connections.
func (r *Redis) play(clients []*redis.Client, change func(*instance), cut bool) {
	r.tb.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	of := slices.Collect(maps.Values(r.instances))
	if len(clients) == 0 {
		fresh := instance{scene: r.fresh}
		change(&fresh)
		r.fresh = fresh.scene
	} else {
		of = nil
		for _, rdb := range clients {
			i := r.instances[rdb]
			if i == nil {
				r.tb.Errorf("neaptest: got a client of something else, want one that Client of this Redis has made")
				return
			}
			of = append(of, i)
		}
	}
	for _, i := range of {
		change(i)
		for l := range i.links {
			if cut {
				l.end()
				delete(i.links, l)
			}
		}
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// holds says how long what goes up to Redis, or down to the client, is held, and what is closed when
// that changes.
func (r *Redis) holds(i *instance, down bool) func(since time.Time) (time.Duration, <-chan struct{}) {
	return func(since time.Time) (time.Duration, <-chan struct{}) {
		r.mu.Lock()
		defer r.mu.Unlock()
		switch {
		case i.paused:
			return forever, r.changed
		case down && i.slow > 0:
			return time.Until(since.Add(i.slow)), r.changed
		}
		return 0, r.changed
	}
}

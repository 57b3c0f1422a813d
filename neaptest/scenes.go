package neaptest

import (
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// Lose has the clients lose Redis: their connections break, and each attempt to connect is
// refused at once. If you name no client, all lose it, and so does each that is made later. For a
// Redis that is silent instead, call [Redis.Slow] with an hour.
func (r *Redis) Lose(clients ...*redis.Client) {
	r.tb.Helper()
	r.play(clients, func(i *instance) { i.lost = true }, true)
}

// Slow delays each reply on its way to the clients by so much; 0 ends that. If you name no client, it
// is so for all, and for each that is made later. Redis itself is as fast as before: a call has run even
// if its caller has given up. Pub/sub messages are late too. What a client sends
// when it connects, before its first command, is answered at once.
func (r *Redis) Slow(by time.Duration, clients ...*redis.Client) {
	r.tb.Helper()
	r.play(clients, func(i *instance) { i.slow = by }, false)
}

// Pause stops the process of a client as far as Redis can tell: what the process writes is
// held, and so are the replies to it. [Redis.Restore] lets all of it go on, also calls whose callers have
// given up meanwhile. A process that really stands still notices nothing until it resumes. Here its goroutines and
// timers run on, so it notices at once that Redis is silent and that its leases end. It can still connect.
func (r *Redis) Pause(client *redis.Client) {
	r.tb.Helper()
	r.play([]*redis.Client{client}, func(i *instance) { i.paused = true }, false)
}

// Fill has Redis refuse each command that would take memory, with an error that begins with OOM, as a server
// does that is full and evicts nothing. A script is refused at its first write if that takes memory,
// and never later, so neap's scripts that renew, conclude and give back still run.
func (r *Redis) Fill() { r.serve().full.Store(true) }

// LoseReply loses the reply of a script: the next one of that name runs, and then the connection breaks.
// The replies to calls behind it on the same connection are lost as well. The name is that of a file in
// neap's directory lua, or its beginning, such as "guard_begin". The scripts of limiters of several policies, with
// bans or with leases, and of merged calls begin with "limit_take(", those of settlements and refunds with
// "limit_settle(". "" is any script. Two calls lose two replies.
func (r *Redis) LoseReply(script string) { r.serve().loseReply(script) }

// Failover has a replica take over that has none of the data: all connections break, the scripts are unknown, and
// every key is gone. No failover loses more than that. The other scenes go on.
func (r *Redis) Failover() {
	r.tb.Helper()
	r.mu.Lock()
	old := r.server
	r.server = old.successor()
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

// play changes the scene of the named clients or, if none is named, of all that there are and will be. With cut
// it breaks their connections.
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

// holds returns the wait of one direction, up to Redis or down to the client: how much longer is a chunk
// held, and which channel is closed when that changes.
func (r *Redis) holds(i *instance, l *link, down bool) func(chunk) (time.Duration, <-chan struct{}) {
	return func(c chunk) (time.Duration, <-chan struct{}) {
		r.mu.Lock()
		defer r.mu.Unlock()
		l.greeted = l.greeted || !down && !greeting.Match(c.bytes)
		switch {
		case !l.greeted:
		case i.paused:
			return forever, r.changed
		case down && i.slow > 0:
			return time.Until(c.since.Add(i.slow)), r.changed
		}
		return 0, r.changed
	}
}

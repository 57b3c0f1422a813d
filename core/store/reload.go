package store

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// How often the slots of a cluster are read again while a node does not answer. By
// itself go-redis does so if a node answers MOVED or READONLY, and once a minute: a
// master that died says nothing, and its replica takes over after seconds.
const (
	reloadAfter = 2 // failures
	reloadSoon  = 500 * time.Millisecond
	reloadFor   = time.Minute // since the first failure: by its defaults a cluster takes 20 s to promote a replica
	reloadLater = 5 * time.Second
	// reloadTime is what reading them may take, and reloadsAtOnce how often that goes on
	// at once: it asks the nodes in any order, the silent one among them.
	reloadTime    = 5 * time.Second
	reloadsAtOnce = 3
)

// reloader reads the slots again, as calls fail. Between them it does nothing.
type reloader struct {
	read    func(ctx context.Context) error // nil if the client has no slots
	last    atomic.Int64                    // when that last began; 0 is never
	running atomic.Int32
}

// failed is told how many calls had no answer, and when the first of them was.
func (r *reloader) failed(now, since int64, calls int) {
	if r.read == nil || calls < reloadAfter {
		return
	}
	pause := int64(reloadSoon)
	if now-since > int64(reloadFor) {
		pause = int64(reloadLater)
	}
	last := r.last.Load()
	if last != 0 && now-last < pause-rand.N(pause/10) || !r.last.CompareAndSwap(last, now) {
		return
	}
	if r.running.Add(1) > reloadsAtOnce {
		r.running.Add(-1)
		return
	}
	go func() {
		defer r.running.Add(-1)
		ctx, cancel := context.WithTimeout(context.Background(), reloadTime)
		defer cancel()
		_ = r.read(ctx) // the next failure has it read again
	}()
}

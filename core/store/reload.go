package store

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/internal/background"
)

// These constants say how often the slots of a cluster are read again while a node does
// not answer. go-redis itself reads them only if a node answers MOVED or READONLY, and
// once a minute. A master that died says nothing, and its replica takes over after
// seconds.
const (
	reloadAfter = 2 // failures
	reloadSoon  = 500 * time.Millisecond
	reloadFor   = time.Minute // since the first failure: with default settings a cluster takes 20 s to promote a replica
	reloadLater = 5 * time.Second
	// reloadTime is how long one reading may take. reloadsAtOnce is how many may run at
	// the same time: a reading asks the nodes in any order, and may meet the silent one
	// first.
	reloadTime    = 5 * time.Second
	reloadsAtOnce = 3
)

// reloader reads the slots again when calls fail. Between failures it does nothing.
type reloader struct {
	read    func(ctx context.Context) error // nil if the client has no slots
	last    atomic.Int64                    // when the last reading began; 0 means never
	running atomic.Int32
}

// failed is told how many calls had no answer, and when the first of them failed.
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
	background.Go(func() {
		defer r.running.Add(-1)
		ctx, cancel := context.WithTimeout(context.Background(), reloadTime)
		defer cancel()
		_ = r.read(ctx) // the next failure starts another reading
	})
}

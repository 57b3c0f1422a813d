package store

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/background"
)

const defaultFirstContact = time.Second

// contact gives the first calls more time. On a busy machine, connecting takes longer
// than a decision may; and while Redis does not decide, each process decides on its own.
type contact struct {
	clock

	most    time.Duration
	since   atomic.Int64         // when the first call began; 0 if there was none
	cluster *redis.ClusterClient // nil if the client is not a ClusterClient
	found   func()               // called when the cluster's nodes are known
}

// budget returns how long a call to the node may take. own is the budget of its runner.
func (c *contact) budget(n *node, own time.Duration) time.Duration {
	if n.met.Load() {
		return own
	}
	now := c.now()
	if c.since.CompareAndSwap(0, now) && c.cluster != nil {
		background.Go(c.connect)
	}
	return max(own, c.most-time.Duration(now-c.since.Load()))
}

// connect connects to all masters of a cluster at once. Otherwise the first call to each
// master would have to connect, and only calls within FirstContact have the time. If
// connect cannot reach a master, the calls try it themselves.
func (c *contact) connect() {
	ctx, cancel := context.WithTimeout(context.Background(), c.most)
	defer cancel()
	if _, err := c.cluster.MasterForKey(ctx, "neap"); err == nil {
		c.found() // so that one dead master does not hold up calls to the others
	}
	_ = c.cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) (err error) {
		defer background.Recover(&err) // go-redis calls it on goroutines of its own
		return master.Ping(ctx).Err()
	})
}

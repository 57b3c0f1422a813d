package store

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"github.com/neap-go/neap/core/script"
)

// nodes are the servers that a store has asked, with a breaker for each of them and
// each budget: calls that allow 50 ms must not stop those that allow 250.
type nodes struct {
	of    func(ctx context.Context, key string) (*redis.Client, error) // nil where the client has one server
	known atomic.Bool                                                  // of knows the nodes, and asks nobody
	alone string                                                       // what a client of one server, or of one that is not known yet, is called
	log   *slog.Logger

	mu       sync.RWMutex
	all      map[string]*node // by address
	breakers map[lane]*breaker
}

// lane is what has a breaker of its own.
type lane struct {
	address string
	budget  time.Duration
}

// follow learns from the client which server has a key.
func (n *nodes) follow(rdb script.Client) {
	switch c := rdb.(type) {
	case *redis.Client:
		n.alone = c.Options().Addr
	case *redis.ClusterClient:
		n.alone = strings.Join(c.Options().Addrs, ",")
		n.of = c.MasterForKey
	case *redis.Ring:
		n.of = func(_ context.Context, key string) (*redis.Client, error) { return c.GetShardClientForKey(key) }
	}
}

// found notes that Redis has answered, so that a client of several servers knows them.
func (n *nodes) found() {
	if n.of != nil && !n.known.Load() {
		n.known.Store(true)
	}
}

// address is that of the server that has a key, so that a dead one does not take the
// others along. It is empty until a call was answered, since nothing is known before.
func (n *nodes) address(ctx context.Context, key string) string {
	if n.of == nil || !n.known.Load() {
		return ""
	}
	c, err := n.of(ctx, key)
	if err != nil {
		return ""
	}
	return c.Options().Addr
}

func (n *nodes) breaker(ctx context.Context, key string, budget time.Duration) *breaker {
	l := lane{n.address(ctx, key), budget}
	n.mu.RLock()
	b := n.breakers[l]
	n.mu.RUnlock()
	if b != nil {
		return b
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.breakers == nil {
		n.all, n.breakers = map[string]*node{}, map[lane]*breaker{}
	}
	if n.all[l.address] == nil {
		n.all[l.address] = newNode(cmp.Or(l.address, n.alone), n.log)
	}
	if n.breakers[l] == nil {
		n.breakers[l] = newBreaker(n.all[l.address], budget)
	}
	return n.breakers[l]
}

// forgotten is after how long without a failure an open breaker tells nothing
// any more: nobody has asked its node, which may have left the cluster.
const forgotten = time.Minute

// open reports whether calls of that budget to any node are held back.
func (n *nodes) open(budget time.Duration) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for l, b := range n.breakers {
		if l.budget == budget && b.State() != gobreaker.StateClosed &&
			time.Since(time.Unix(0, b.node.missed.Load())) < forgotten {
			return true
		}
	}
	return false
}

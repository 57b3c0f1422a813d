package store

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/call"
	"github.com/neap-go/neap/core/internal/wire"
	"github.com/neap-go/neap/core/script"
)

// nodes are the servers that a store has asked, with a breaker for each server and
// budget: calls with 50 ms must not stop calls with 250 ms.
type nodes struct {
	clock

	of     func(ctx context.Context, key string) (*redis.Client, error) // returns a key's server; nil if the client has one server
	known  atomic.Bool                                                  // calling of does not ask Redis
	lumped atomic.Bool                                                  // all[""] stands for servers that are not known
	name   string                                                       // as the log names it while the server is not known
	logger *slog.Logger
	notify Observer
	slots  reloader
	dialer *dialer // for the client itself
	calls  *call.Client
	single script.Client  // the client itself, if it has one server
	batch  wire.Pipeliner // nil if calls are not sent in batches

	sweep atomic.Int64 // when to look for lost nodes that are not asked any more; 0 if none is lost

	mu       sync.RWMutex
	all      map[string]*node // by address
	breakers map[lane]*breaker
}

// lane is an address and a budget. Each lane has its own breaker.
type lane struct {
	address string
	budget  time.Duration
}

// follow finds out from the client how to tell which server has a key.
func (n *nodes) follow(rdb script.Client, calls *call.Client) {
	n.all, n.breakers = map[string]*node{}, map[lane]*breaker{}
	n.calls, n.dialer = calls, dialerOf(rdb)
	switch c := rdb.(type) {
	case *redis.Client:
		n.name, n.single = c.Options().Addr, c
	case *redis.ClusterClient:
		n.name = cmp.Or(strings.Join(c.Options().Addrs, ","), fmt.Sprintf("%T", rdb))
		n.of = c.MasterForKey
		n.known.Store(c.Options().ClusterSlots != nil)
		n.slots.read = func(ctx context.Context) error { // ForEachMaster reads the slots first
			return c.ForEachMaster(ctx, func(context.Context, *redis.Client) error { return nil })
		}
	case *redis.Ring:
		n.name = strings.Join(slices.Sorted(maps.Values(c.Options().Addrs)), ",")
		n.of = func(_ context.Context, key string) (*redis.Client, error) { return c.GetShardClientForKey(key) }
		n.known.Store(true)
	default:
		n.name = fmt.Sprintf("%T", rdb)
	}
}

// batches turns on sending in batches, if the client can do it.
func (n *nodes) batches(rdb script.Client) {
	switch c := rdb.(type) {
	case *redis.Client:
		n.batch = c
	case *redis.ClusterClient:
		n.batch = c
	case *redis.Ring:
		n.batch = c
	}
}

// found notes that Redis has answered, so the client knows its servers. It drops the node
// that stood for all of them.
func (n *nodes) found() {
	if n.of == nil || n.known.Load() && !n.lumped.Load() {
		return
	}
	n.known.Store(true)
	n.mu.Lock()
	gone := n.drop(func(address string, _ *node) bool { return address == "" })
	n.lumped.Store(false)
	n.mu.Unlock()
	for _, one := range gone {
		one.leave(textBack)
	}
}

// drop forgets nodes, and returns them.
func (n *nodes) drop(which func(address string, of *node) bool) (gone []*node) {
	for address, one := range n.all {
		if which(address, one) {
			gone = append(gone, one)
		}
	}
	maps.DeleteFunc(n.breakers, func(l lane, b *breaker) bool { return which(l.address, b.node) })
	maps.DeleteFunc(n.all, which)
	return gone
}

// server returns the client of the server that has a key, so that one dead server does
// not hold up calls to the others. Until a call was answered, nothing is known: then c is
// nil and address is empty.
func (n *nodes) server(ctx context.Context, key string) (c *redis.Client, address string) {
	if n.of == nil || !n.known.Load() {
		return nil, ""
	}
	c, err := n.lookUp(ctx, key)
	if err != nil {
		return nil, ""
	}
	return c, c.Options().Addr
}

// ofLease returns the address of the server that has a key, or "". The wheel of leases
// holds its mutex meanwhile, so the client must not end this goroutine.
func (n *nodes) ofLease(key string) (address string) {
	if n.of == nil {
		return ""
	}
	_ = background.Try(func() error {
		_, address = n.server(context.Background(), key)
		return nil
	})
	return address
}

// lookUp asks the client, which may run code of its user, such as the hash of a Ring.
func (n *nodes) lookUp(ctx context.Context, key string) (c *redis.Client, err error) {
	defer background.Recover(&err)
	return n.of(ctx, key)
}

func (n *nodes) breaker(ctx context.Context, key string, budget time.Duration) *breaker {
	c, address := n.server(ctx, key)
	l := lane{address, budget}
	if at := n.sweep.Load(); at != 0 && n.now() > at {
		n.forget(address)
	}
	n.mu.RLock()
	b := n.breakers[l]
	n.mu.RUnlock()
	if b != nil && !b.stale() {
		return b
	}
	b, gone := n.add(l, c)
	for _, one := range gone {
		one.leave(textGone)
	}
	return b
}

// add makes what is missing for a lane. It returns the nodes that it forgot to make room.
func (n *nodes) add(l lane, c *redis.Client) (b *breaker, gone []*node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	address := l.address
	if b := n.breakers[l]; b != nil && b.stale() {
		b.left.Store(true)
		b.node.open.Add(-1)
		delete(n.breakers, l)
	}
	if n.all[address] == nil {
		gone = n.drop(func(_ string, old *node) bool { return old.idle(forgotten) })
		name, d, client := n.name, n.dialer, n.single
		if c != nil {
			name, d, client = address, dialerOf(c), c
		}
		n.all[address] = newNode(n, name, d, client)
		n.lumped.Store(n.all[""] != nil)
	}
	if n.breakers[l] == nil {
		b := newBreaker(n.all[address], n.calls, l.budget)
		if n.batch != nil && (n.of == nil || address != "") { // no batches while the server is not known
			b.queue = newQueue(b, n.batch, n.calls.HonoursDeadlines(), l.budget)
		}
		n.breakers[l] = b
	}
	return n.breakers[l], gone
}

// forget ends the outages of lost nodes that had no call for a while: since a failover,
// another one has their keys. The node that is about to be asked stays.
func (n *nodes) forget(asked string) {
	n.mu.Lock()
	n.sweep.Store(0)
	gone := n.drop(func(address string, one *node) bool { return address != asked && one.isLost() && one.idle(forgotten) })
	for _, one := range n.all {
		if one.isLost() {
			n.sweep.Store(n.now() + int64(forgotten))
		}
	}
	n.mu.Unlock()
	for _, one := range gone {
		one.leave(textGone)
	}
}

// forgotten is how long a node may have no call before it counts no more: it may have
// left the cluster.
const forgotten = time.Minute

// open reports whether calls of that budget to any node are held back.
func (n *nodes) open(budget time.Duration) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for l, b := range n.breakers {
		if l.budget == budget && n.holdsBack(b) {
			return true
		}
	}
	return false
}

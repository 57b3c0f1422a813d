package neaptest

import (
	"context"
	"maps"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Redis is an embedded Redis without a socket, and the scenes that a test plays on it. Make it with [New]: the zero
// Redis is of no use. Its methods may be called from several goroutines.
type Redis struct {
	tb testing.TB

	mu        sync.Mutex
	server    *server
	changed   chan struct{} // closed when a scene begins or ends
	fresh     scene         // of the clients that are yet to be made
	instances map[*redis.Client]*instance
}

// scene is what a client goes through.
type scene struct {
	lost, paused bool
	slow         time.Duration
}

// instance is one client and its connections.
type instance struct {
	scene // under the mutex of its Redis

	redis *Redis
	links map[*link]struct{}
}

// New starts an embedded Redis, which ends with the test. In a bubble of testing/synctest
// its clock is the bubble's, so that time.Sleep ends keys: call New with the bubble's own t,
// inside of it. Outside of a bubble its clock is that of the machine.
//
// When the test has returned, New restores Redis. In a bubble it then lets a minute of the bubble's clock pass, in
// which work in the background ends: a bubble must not end before its goroutines.
func New(tb testing.TB) *Redis {
	tb.Helper()
	r := &Redis{tb: tb, server: newServer(), changed: make(chan struct{}), instances: map[*redis.Client]*instance{}}
	tb.Cleanup(r.end)
	return r
}

// address looks like one in the logs. Nobody dials it, and it needs no resolver.
const address = "127.0.0.1:6379"

// Client returns a new client for each call, with connections of its own. neap keeps a store for each client, with
// breakers of its own, so two clients are two instances of your application. Clients are closed when the test ends.
func (r *Redis) Client() *redis.Client {
	own := &instance{redis: r, links: map[*link]struct{}{}}
	rdb := redis.NewClient(&redis.Options{
		Addr:                  address,
		ContextTimeoutEnabled: true,
		Dialer:                own.dial,
		// Callers that wait for a connection would share timers with those of other bubbles, which is fatal.
		PoolSize: 10_000, PipelinePoolSize: 10_000,
		// For that many connections go-redis would make a queue of 6 MB.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	own.scene = r.fresh
	r.instances[rdb] = own
	return rdb
}

// dial is the client's Dialer.
func (i *instance) dial(context.Context, string, string) (net.Conn, error) {
	i.redis.mu.Lock()
	defer i.redis.mu.Unlock()
	if i.lost {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	far, err := i.redis.server.Dial()
	if err != nil {
		return nil, err
	}
	client, near := net.Pipe()
	l := &link{near: &noted{Conn: near, closed: make(chan struct{})}, far: far}
	i.links[l] = struct{}{}
	go carry(l.near, far, i.redis.holds(i, l, false))
	go carry(far, l.near, i.redis.holds(i, l, true))
	return &conn{Conn: client, gone: l.near.closed}, nil
}

// end closes the clients and the server. A bubble must not end before its goroutines, and neap and
// go-redis have some in the background. In a bubble it takes no time to wait for them.
func (r *Redis) end() {
	r.Restore()
	bubble := bubbled()
	if bubble {
		time.Sleep(time.Minute)
	}
	r.mu.Lock()
	clients := maps.Clone(r.instances)
	r.mu.Unlock()
	for rdb := range clients {
		_ = rdb.Close()
	}
	r.play(nil, func(i *instance) { i.lost = true }, true)
	r.serve().end()
	if bubble {
		time.Sleep(time.Second)
	}
}

// bubbled reports whether this is a bubble of testing/synctest.
func bubbled() (is bool) {
	defer func() { is = recover() == nil }()
	synctest.Wait()
	return true
}

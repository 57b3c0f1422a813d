package lock

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
)

const (
	// linger is how long a subscription outlives the last who waits.
	linger = 2 * time.Second
	// silence is after how long without a message the connection is tried.
	silence = 30 * time.Second
	// tuning is how long to try to subscribe.
	tuning = 5 * time.Second
	// sulk and longSulk are how long nobody subscribes after a failure, and
	// after a refusal.
	sulk, longSulk = time.Second, time.Minute
)

// How a release is told of.
const (
	publish  = "PUBLISH"
	spublish = "SPUBLISH"
)

// bells hear of the releases for which this process waits, on one connection
// to each server. They are a hint: where one is missing, who waits asks again
// after its RetryDelay.
type bells struct {
	ring   func(key string)
	client subscriber

	mu       sync.Mutex
	channels map[string]*channel
	stations map[subscriber]*station
	plain    bool      // the cluster has no sharded channels
	deaf     time.Time // until when nobody subscribes
}

type subscriber interface {
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// station is a connection that hears of some channels.
type station struct {
	server   subscriber
	sub      *redis.PubSub
	channels map[string]*channel
}

type channel struct {
	key     string
	wake    string
	station *station
	state   state
	known   chan struct{} // closed when the state is
	ears    int
	idle    *time.Timer
}

type state uint8

const (
	unknown state = iota
	live
	dead
)

func newBells(rdb script.Client, ring func(key string)) *bells {
	client, ok := rdb.(subscriber)
	if !ok {
		return nil
	}
	return &bells{ring: ring, client: client, channels: map[string]*channel{}, stations: map[subscriber]*station{}}
}

// listen subscribes to the releases of a key, in the background. It returns
// nil when that would be in vain.
func (b *bells) listen(key string) *ear {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	ch := b.channels[key]
	if ch == nil {
		if time.Now().Before(b.deaf) {
			return nil
		}
		ch = &channel{key: key, known: make(chan struct{})}
		b.channels[key] = ch
		go b.tune(ch)
	}
	ch.ears++
	return &ear{of: b, ch: ch}
}

// leave unsubscribes some time after the last has left.
func (b *bells) leave(ch *channel) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ch.ears--; ch.ears > 0 || ch.state == dead {
		return
	}
	if ch.idle == nil {
		ch.idle = time.AfterFunc(linger, func() { b.forget(ch) })
		return
	}
	ch.idle.Reset(linger)
}

func (b *bells) forget(ch *channel) {
	b.mu.Lock()
	st := ch.station
	if ch.ears > 0 || ch.state == dead {
		b.mu.Unlock()
		return
	}
	ch.end()
	delete(b.channels, ch.key)
	empty := false
	if st != nil {
		delete(st.channels, ch.key)
		if empty = len(st.channels) == 0; empty {
			delete(b.stations, st.server)
		}
	}
	b.mu.Unlock()
	switch {
	case empty:
		_ = st.sub.Close()
	case st != nil:
		ctx, cancel := context.WithTimeout(context.Background(), tuning)
		defer cancel()
		_ = st.unsubscribe(ctx, ch)
	}
}

// tune subscribes to a channel on the server that has its key.
func (b *bells) tune(ch *channel) {
	ctx, cancel := context.WithTimeout(context.Background(), tuning)
	defer cancel()
	server, wake, err := b.server(ctx, ch.key)
	b.mu.Lock()
	if err != nil {
		b.fail(err)
		b.drop(ch)
		b.mu.Unlock()
		return
	}
	if ch.state == dead {
		b.mu.Unlock()
		return
	}
	st := b.stations[server]
	if st == nil {
		st = &station{server: server, sub: server.Subscribe(ctx), channels: map[string]*channel{}}
		b.stations[server] = st
		go b.hear(st)
	}
	ch.wake, ch.station, st.channels[ch.key] = wake, st, ch
	b.mu.Unlock()
	if err := st.subscribe(ctx, ch); err != nil {
		b.silence(st, err)
	}
}

// server is where the releases of a key are published, and how. A cluster
// carries what is published to all of its nodes, unless the channel is sharded.
func (b *bells) server(ctx context.Context, key string) (subscriber, string, error) {
	cluster, ok := b.client.(*redis.ClusterClient)
	b.mu.Lock()
	plain := b.plain
	b.mu.Unlock()
	if !ok || plain {
		return b.client, publish, nil
	}
	node, err := cluster.MasterForKey(ctx, key)
	return node, spublish, err
}

func (st *station) subscribe(ctx context.Context, ch *channel) error {
	if ch.wake == spublish {
		return st.sub.SSubscribe(ctx, ch.key)
	}
	return st.sub.Subscribe(ctx, ch.key)
}

func (st *station) unsubscribe(ctx context.Context, ch *channel) error {
	if ch.wake == spublish {
		return st.sub.SUnsubscribe(ctx, ch.key)
	}
	return st.sub.Unsubscribe(ctx, ch.key)
}

// hear goes on until the connection fails or is closed.
func (b *bells) hear(st *station) {
	ctx := context.Background()
	tried := false
	for {
		message, err := st.sub.ReceiveTimeout(ctx, silence)
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && !tried {
			tried = true
			err = st.sub.Ping(ctx)
			if err == nil {
				continue
			}
		}
		if err != nil {
			b.silence(st, err)
			return
		}
		tried = false
		switch m := message.(type) {
		case *redis.Message:
			b.ring(m.Channel)
		case *redis.Subscription:
			b.confirmed(st, m)
		}
	}
}

func (b *bells) confirmed(st *station, s *redis.Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ch := st.channels[s.Channel]
	switch {
	case ch == nil:
	case strings.HasSuffix(s.Kind, "unsubscribe"):
		b.drop(ch) // the slot has moved
	case ch.state == unknown:
		ch.state = live
		close(ch.known)
	}
}

// silence ends a connection that failed, and those that heard by it.
func (b *bells) silence(st *station, err error) {
	b.mu.Lock()
	if b.stations[st.server] == st {
		delete(b.stations, st.server)
		b.fail(err)
		for _, ch := range st.channels {
			b.drop(ch)
		}
	}
	b.mu.Unlock()
	_ = st.sub.Close()
}

// fail notes what can be learnt from an error.
func (b *bells) fail(err error) {
	switch {
	case strings.Contains(err.Error(), "unknown command") && !b.plain:
		b.plain = true // Redis before 7
	case redis.HasErrorPrefix(err, "NOPERM"):
		b.deaf = time.Now().Add(longSulk)
	default:
		b.deaf = time.Now().Add(sulk)
	}
}

func (b *bells) drop(ch *channel) {
	ch.end()
	if b.channels[ch.key] == ch {
		delete(b.channels, ch.key)
	}
	if ch.station != nil {
		delete(ch.station.channels, ch.key)
	}
}

func (ch *channel) end() {
	if ch.state == unknown {
		close(ch.known)
	}
	ch.state = dead
}

package lock

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
)

const (
	// linger is how long a subscription outlives the last who waits.
	linger = 2 * time.Second
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
	plain    bool      // there are no sharded channels
	deaf     time.Time // until when nobody subscribes
	proven   bool      // Redis lets this client subscribe and publish
	trial    *channel  // the one that is subscribed to first, to prove it
}

type subscriber interface {
	script.Client
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// channel is what is published about one key.
type channel struct {
	key     string
	station *station
	state   state
	known   chan struct{} // closed when the state is
	tuned   bool          // no more put off until the trial is over
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
	_, cluster := rdb.(*redis.ClusterClient)
	if !cluster {
		client = &struct{ subscriber }{client} // what was passed by value may not be comparable
	}
	return &bells{
		ring: ring, client: client, plain: !cluster,
		channels: map[string]*channel{}, stations: map[subscriber]*station{},
	}
}

// overhear is listen where that takes no new subscription, and nil otherwise.
func (b *bells) overhear(key string) *ear {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.share(b.channels[key])
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
		b.begin(ch)
	}
	return b.share(ch)
}

// begin subscribes to a channel: to the first as a trial, and to the others when
// that has gone well.
func (b *bells) begin(ch *channel) {
	if !b.proven {
		if b.trial != nil {
			return
		}
		b.trial = ch
	}
	ch.tuned = true
	go b.tune(ch)
}

// proceed begins with what was put off.
func (b *bells) proceed() {
	for _, ch := range b.channels {
		if !ch.tuned {
			b.begin(ch)
		}
	}
}

func (b *bells) share(ch *channel) *ear {
	if ch == nil {
		return nil
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
	if ch.ears > 0 || ch.state == dead {
		b.mu.Unlock()
		return
	}
	st := ch.station
	b.drop(ch)
	empty := st != nil && len(st.channels) == 0
	if empty {
		delete(b.stations, st.server)
	}
	b.mu.Unlock()
	switch {
	case empty:
		_ = st.sub.Close()
	case st != nil:
		ctx, cancel := context.WithTimeout(context.Background(), tuning)
		defer cancel()
		_ = b.settle(ctx, st, ch.key)
	}
}

// tune subscribes to a channel on the server that has its key.
func (b *bells) tune(ch *channel) {
	ctx, cancel := context.WithTimeout(context.Background(), tuning)
	defer cancel()
	server, wake, err := b.server(ctx, ch.key)
	b.mu.Lock()
	if ch.state == dead {
		b.mu.Unlock()
		return
	}
	if err != nil {
		b.fail(err)
		b.drop(ch)
		b.mu.Unlock()
		return
	}
	st := b.stations[server]
	if st == nil {
		st = newStation(ctx, server, wake)
		b.stations[server] = st
		go b.hear(st)
	}
	ch.station, st.channels[ch.key] = st, ch
	b.mu.Unlock()
	if err := b.settle(ctx, st, ch.key); err != nil {
		b.silence(st, err)
	}
}

// server is where the releases of a key are published, and how. A cluster
// carries what is published to all of its nodes, unless the channel is sharded.
func (b *bells) server(ctx context.Context, key string) (subscriber, string, error) {
	b.mu.Lock()
	plain := b.plain
	b.mu.Unlock()
	cluster, ok := b.client.(*redis.ClusterClient)
	if !ok || plain {
		return b.client, publish, nil
	}
	node, err := cluster.MasterForKey(ctx, key)
	return node, spublish, err
}

// fail notes what can be learnt from an error. What waits for a trial waits no
// more.
func (b *bells) fail(err error) {
	b.proven = false
	switch {
	case strings.Contains(err.Error(), "unknown command") && !b.plain:
		b.plain = true // Redis before 7
	case redis.HasErrorPrefix(err, "NOPERM"), strings.Contains(err.Error(), "unknown command"):
		b.deaf = time.Now().Add(longSulk)
	default:
		b.deaf = time.Now().Add(sulk)
	}
	for _, ch := range b.channels {
		if !ch.tuned {
			b.drop(ch)
		}
	}
}

// drop ends a channel. Who listens to it finds that out when it asks next.
func (b *bells) drop(ch *channel) {
	if ch.state == unknown {
		close(ch.known)
	}
	ch.state = dead
	if b.channels[ch.key] == ch {
		delete(b.channels, ch.key)
	}
	if ch.station != nil && ch.station.channels[ch.key] == ch {
		delete(ch.station.channels, ch.key)
	}
	if b.trial == ch {
		b.trial = nil
		b.proceed()
	}
}

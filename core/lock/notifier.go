package lock

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/script"
)

const (
	// linger is how long a subscription outlives its last listener.
	linger = 2 * time.Second
	// subscribeTimeout is the most time that one attempt to subscribe takes.
	subscribeTimeout = 5 * time.Second
	// failedBackoff and refusedBackoff are how long the notifier waits after a
	// subscription failed, and after Redis refused one.
	failedBackoff, refusedBackoff = time.Second, time.Minute
)

// These commands publish a release.
const (
	publish  = "PUBLISH"
	spublish = "SPUBLISH"
)

// notifier receives the releases that callers of this process wait for, on one connection
// to each server. A notification is a hint: if one is lost, the caller asks again after
// its RetryDelay.
type notifier struct {
	own    string // what the channels of this process end with
	notify func(key string)
	client subscriber

	mu            sync.Mutex
	channels      map[string]*channel
	subscriptions map[subscriber]*subscription
	plain         bool      // the server has no sharded channels
	backoff       time.Time // the notifier does not subscribe before this time
	proven        bool      // Redis lets this client subscribe and publish
	trial         *channel  // the subscription that is to prove that the client may
}

type subscriber interface {
	script.Client
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// channel is where the releases of one key are published: for all processes under the key,
// and for this one under the key with the process behind it.
type channel struct {
	key          string
	subscription *subscription
	state        state
	known        chan struct{} // closed when the state is known
	begun        bool          // it does not wait for the trial any more
	listeners    int
	idle         *time.Timer
}

type state uint8

const (
	unknown state = iota
	live
	dead
)

func newNotifier(rdb script.Client, process string, notify func(key string)) *notifier {
	client, ok := rdb.(subscriber)
	if !ok {
		return nil
	}
	_, cluster := rdb.(*redis.ClusterClient)
	if !cluster {
		client = &struct{ subscriber }{client} // a client that was passed by value may not be comparable
	}
	return &notifier{
		own: ":" + process, notify: notify, client: client, plain: !cluster,
		channels: map[string]*channel{}, subscriptions: map[subscriber]*subscription{},
	}
}

// attach listens to a channel that exists already. It returns nil if there is none.
func (n *notifier) attach(key string) *listener {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.share(n.channels[key])
}

// listen subscribes to the releases of a key, in the background. It returns nil during a
// backoff.
func (n *notifier) listen(key string) *listener {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	ch := n.channels[key]
	if ch == nil {
		if time.Now().Before(n.backoff) {
			return nil
		}
		ch = &channel{key: key, known: make(chan struct{})}
		n.channels[key] = ch
		n.begin(ch)
	}
	return n.share(ch)
}

// begin subscribes to a channel. The first subscription is a trial. The others wait until
// it has succeeded.
func (n *notifier) begin(ch *channel) {
	if !n.proven {
		if n.trial != nil {
			return
		}
		n.trial = ch
	}
	ch.begun = true
	background.Go(func() { n.subscribe(ch) })
}

// proceed begins the channels that waited for the trial, and settles the others.
func (n *notifier) proceed() {
	for _, ch := range n.channels {
		if ch.begun {
			n.settle(ch)
		} else {
			n.begin(ch)
		}
	}
}

// settle makes a channel live that Redis has confirmed. As long as the client is not proven,
// it makes a trial of the channel instead, unless there is another.
func (n *notifier) settle(ch *channel) {
	sub := ch.subscription
	switch {
	case ch.state != unknown || sub == nil || !sub.asked[ch.key]:
	case n.proven:
		ch.live()
	case n.trial == nil, n.trial == ch:
		n.trial = ch
		background.Go(func() { n.probe(sub, ch) })
	}
}

func (ch *channel) live() {
	ch.state = live
	close(ch.known)
}

func (n *notifier) share(ch *channel) *listener {
	if ch == nil {
		return nil
	}
	ch.listeners++
	return &listener{of: n, ch: ch}
}

// leave ends one listener's share. Some time after the last listener has left, the
// channel is unsubscribed.
func (n *notifier) leave(ch *channel) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ch.listeners--; ch.listeners > 0 || ch.state == dead {
		return
	}
	if ch.idle == nil {
		ch.idle = background.AfterFunc(linger, func() { n.forget(ch) })
		return
	}
	ch.idle.Reset(linger)
}

func (n *notifier) forget(ch *channel) {
	n.mu.Lock()
	if ch.listeners > 0 || ch.state == dead {
		n.mu.Unlock()
		return
	}
	sub := ch.subscription
	n.drop(ch)
	empty := sub != nil && len(sub.channels) == 0
	if empty {
		delete(n.subscriptions, sub.server)
	}
	n.mu.Unlock()
	switch {
	case empty:
		_ = sub.conn.Close()
	case sub != nil:
		ctx, cancel := context.WithTimeout(context.Background(), subscribeTimeout)
		defer cancel()
		_ = n.update(ctx, sub, ch.key)
	}
}

// subscribe subscribes to a channel on the server that has its key.
func (n *notifier) subscribe(ch *channel) {
	ctx, cancel := context.WithTimeout(context.Background(), subscribeTimeout)
	defer cancel()
	var server subscriber
	var wake string
	err := background.Try(func() (err error) {
		server, wake, err = n.server(ctx, ch.key)
		return err
	})
	sub := n.join(ctx, ch, server, wake, err)
	if sub == nil {
		return
	}
	if err := background.Try(func() error { return n.update(ctx, sub, ch.key) }); err != nil {
		n.disconnect(sub, err)
	}
}

// join adds a channel to the subscription of its server. It returns nil if the channel is
// dropped; err says why the server is not known.
func (n *notifier) join(ctx context.Context, ch *channel, server subscriber, wake string, err error) *subscription {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ch.state == dead {
		return nil
	}
	sub := n.subscriptions[server]
	if err == nil && sub == nil {
		sub, err = newSubscription(ctx, server, wake)
	}
	if err != nil {
		n.fail(err)
		n.drop(ch)
		return nil
	}
	if n.subscriptions[server] == nil {
		n.subscriptions[server] = sub
		background.Go(func() { n.receive(sub) })
	}
	ch.subscription, sub.channels[ch.key] = sub, ch
	return sub
}

// server returns the server that publishes the releases of a key, and the command that it
// uses. A cluster sends a message to all of its nodes, unless the channel is sharded.
func (n *notifier) server(ctx context.Context, key string) (subscriber, string, error) {
	n.mu.Lock()
	plain := n.plain
	n.mu.Unlock()
	cluster, ok := n.client.(*redis.ClusterClient)
	if !ok || plain {
		return n.client, publish, nil
	}
	node, err := cluster.MasterForKey(ctx, key)
	return node, spublish, err
}

// fail sets the backoff that fits the error, and drops the channels that wait for a
// trial.
func (n *notifier) fail(err error) {
	n.proven = false
	switch {
	case strings.Contains(err.Error(), "unknown command") && !n.plain:
		n.plain = true // Redis before 7
	case redis.HasErrorPrefix(err, "NOPERM"), strings.Contains(err.Error(), "unknown command"):
		n.backoff = time.Now().Add(refusedBackoff)
	default:
		n.backoff = time.Now().Add(failedBackoff)
	}
	for _, ch := range n.channels {
		if !ch.begun {
			n.drop(ch)
		}
	}
}

// drop ends a channel. Its listeners notice that before they ask Redis again.
func (n *notifier) drop(ch *channel) {
	if ch.state == unknown {
		close(ch.known)
	}
	ch.state = dead
	if n.channels[ch.key] == ch {
		delete(n.channels, ch.key)
	}
	if ch.subscription != nil && ch.subscription.channels[ch.key] == ch {
		delete(ch.subscription.channels, ch.key)
	}
	if n.trial == ch {
		n.trial = nil
		n.proceed()
	}
}

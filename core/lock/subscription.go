package lock

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/background"
)

// idleTimeout is how long a connection may be silent before it is pinged, and how long
// the answer to the ping may take.
const idleTimeout = 30 * time.Second

// probe is the message that a client publishes once to see whether it may publish.
const probe = "probe"

// subscription is one connection and the channels that it receives. The notifier's mutex
// guards all fields but sending and conn.
type subscription struct {
	server   subscriber
	wake     string
	conn     *redis.PubSub
	channels map[string]*channel // the channels that have listeners

	sending sync.Mutex      // sends the commands in the order in which they were decided
	asked   map[string]bool // the channels that were subscribed to, and whether Redis confirmed it
	leaving map[string]int  // the number of unsubscriptions that Redis has not confirmed yet
}

func newSubscription(ctx context.Context, server subscriber, wake string) (sub *subscription, err error) {
	defer background.Recover(&err)
	return &subscription{
		server: server, wake: wake, conn: server.Subscribe(ctx),
		channels: map[string]*channel{}, asked: map[string]bool{}, leaving: map[string]int{},
	}, nil
}

// update subscribes to a channel that has listeners, and unsubscribes from one that has
// none.
func (n *notifier) update(ctx context.Context, sub *subscription, key string) error {
	sub.sending.Lock()
	defer sub.sending.Unlock()
	n.mu.Lock()
	wanted := sub.channels[key] != nil
	confirmed, asked := sub.asked[key]
	switch {
	case wanted && !asked:
		sub.asked[key] = false
	case !wanted && asked:
		delete(sub.asked, key)
		sub.leaving[key]++
	}
	n.mu.Unlock()
	sharded := sub.wake == spublish
	switch {
	case wanted && confirmed:
		n.confirmed(sub, key)
	case wanted == asked:
	case wanted && sharded:
		return sub.conn.SSubscribe(ctx, key, key+n.own)
	case wanted:
		return sub.conn.Subscribe(ctx, key, key+n.own)
	case sharded:
		return sub.conn.SUnsubscribe(ctx, key, key+n.own)
	default:
		return sub.conn.Unsubscribe(ctx, key, key+n.own)
	}
	return nil
}

// receive reads messages until the connection fails or is closed.
func (n *notifier) receive(sub *subscription) {
	n.disconnect(sub, background.Try(func() error { return n.read(sub) }))
}

func (n *notifier) read(sub *subscription) error {
	ctx := context.Background()
	for tried := false; ; {
		message, err := sub.conn.ReceiveTimeout(ctx, idleTimeout)
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && !tried {
			tried = true
			if err = sub.conn.Ping(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		tried = false
		switch m := message.(type) {
		case *redis.Message:
			if m.Payload != probe {
				n.notify(strings.TrimSuffix(m.Channel, n.own))
			}
		case *redis.Subscription:
			key, own := strings.CutSuffix(m.Channel, n.own)
			switch {
			case !own: // the confirmation for this process comes next
			case strings.HasSuffix(m.Kind, "unsubscribe"):
				n.unsubscribed(sub, key)
			default:
				n.confirmed(sub, key)
			}
		}
	}
}

// confirmed handles the confirmation of a subscription.
func (n *notifier) confirmed(sub *subscription, key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, asked := sub.asked[key]; asked {
		sub.asked[key] = true
	}
	if ch := sub.channels[key]; ch != nil {
		n.settle(ch)
	}
}

// probe publishes a message of its own before any caller relies on notifications. If the
// client had no permission to publish, Redis would log each PUBLISH of a script as
// refused.
func (n *notifier) probe(sub *subscription, ch *channel) {
	ctx, cancel := context.WithTimeout(context.Background(), subscribeTimeout)
	defer cancel()
	cmd := redis.NewIntCmd(ctx, strings.ToLower(sub.wake), ch.key+n.own, probe)
	err := background.Try(func() error { return sub.server.Process(ctx, cmd) })
	if err == nil {
		err = cmd.Err() // the client's Process may not wait for the reply
	}
	if err != nil {
		n.disconnect(sub, err)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.trial == ch {
		n.trial, n.proven = nil, true
		ch.live()
		n.proceed()
	}
}

func (n *notifier) unsubscribed(sub *subscription, key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if sub.leaving[key] > 1 {
		sub.leaving[key]--
		return
	}
	if sub.leaving[key] == 1 {
		delete(sub.leaving, key)
		return
	}
	delete(sub.asked, key) // the slot has moved
	if ch := sub.channels[key]; ch != nil {
		n.drop(ch)
	}
	if len(sub.channels) == 0 && n.subscriptions[sub.server] == sub {
		delete(n.subscriptions, sub.server)
		background.Go(func() { _ = sub.conn.Close() })
	}
}

// disconnect closes a connection that failed, and drops its channels.
func (n *notifier) disconnect(sub *subscription, err error) {
	n.mu.Lock()
	if n.subscriptions[sub.server] == sub {
		delete(n.subscriptions, sub.server)
		n.fail(err)
		clear(sub.asked) // none of its channels is a trial any more
		for _, ch := range sub.channels {
			n.drop(ch)
		}
	}
	n.mu.Unlock()
	_ = sub.conn.Close()
}

package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

// aSubscription is a subscription without a connection, to which a key was subscribed.
func aSubscription(key string) (*notifier, *subscription, *channel) {
	n := &notifier{channels: map[string]*channel{}, subscriptions: map[subscriber]*subscription{}, proven: true}
	sub := &subscription{wake: publish, channels: map[string]*channel{}, asked: map[string]bool{}, leaving: map[string]int{}}
	ch := &channel{key: key, subscription: sub, known: make(chan struct{}), begun: true}
	n.channels[key], sub.channels[key] = ch, ch
	return n, sub, ch
}

// Redis says nothing to a second subscription to a key. If Redis has confirmed the first,
// the listener is live immediately.
func TestASecondSubscriptionIsLive(t *testing.T) {
	t.Parallel()
	for said, want := range map[bool]state{true: live, false: unknown} {
		n, sub, ch := aSubscription("key")
		sub.asked["key"] = said
		if err := n.update(t.Context(), sub, "key"); err != nil || ch.state != want {
			t.Errorf("confirmed %v: got the state %v, %v, want %v", said, ch.state, err, want)
		}
	}
}

// A late confirmation of an unsubscription does not end a newer subscription. If no
// unsubscription is outstanding, the slot has moved. A connection without channels is closed.
func TestOldUnsubscriptionsEndNothing(t *testing.T) {
	t.Parallel()
	n, sub, ch := aSubscription("key")
	sub.leaving["key"] = 3
	sub.asked["key"] = false
	for range 3 {
		n.unsubscribed(sub, "key")
		if ch.state != unknown {
			t.Fatalf("an old unsubscription: got the state %v, want %v", ch.state, unknown)
		}
	}
	n.confirmed(sub, "key")
	if ch.state != live {
		t.Errorf("a confirmed subscription: got the state %v, want %v", ch.state, live)
	}
	rdb := redis.NewClient(&redis.Options{})
	defer rdb.Close()
	sub.conn, n.subscriptions[nil] = rdb.Subscribe(t.Context()), sub
	n.unsubscribed(sub, "key")
	redistest.Await(t, time.Minute, "the connection to be closed", func() bool {
		return errors.Is(sub.conn.Ping(t.Context()), redis.ErrClosed) && n.subscriptions[nil] == nil
	})
	if ch.state != dead || n.channels["key"] != nil || sub.channels["key"] != nil {
		t.Errorf("a slot that moved: got the state %v, kept %v and %v, want %v and not kept",
			ch.state, n.channels["key"] != nil, sub.channels["key"] != nil, dead)
	}
}

// publisher is a server on which a client may publish.
type publisher struct{ subscriber }

func (publisher) Process(context.Context, redis.Cmder) error { return nil }

// A channel that Redis confirms while it is not known whether the client may subscribe becomes
// live once that is known, by the trial of another, or by its own, also if that of another
// ends without a result.
func TestAChannelThatIsConfirmedEarlyBecomesLive(t *testing.T) {
	t.Parallel()
	for others, end := range map[string]func(*notifier, *subscription, *channel){
		"none":             nil,
		"one that is live": (*notifier).probe,
		"one that is dropped": func(n *notifier, _ *subscription, trial *channel) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.drop(trial)
		},
	} {
		n, sub, ch := aSubscription("key")
		n.proven, sub.server, sub.asked["key"] = false, publisher{}, false
		trial := &channel{key: "trial", subscription: sub, known: make(chan struct{}), begun: true}
		if end != nil {
			n.trial, n.channels["trial"], sub.channels["trial"] = trial, trial, trial
		}
		n.confirmed(sub, "key")
		if end != nil {
			end(n, sub, trial)
		}
		redistest.Await(t, time.Minute, "the channel to be live, beside the trial of "+others, func() bool {
			n.mu.Lock()
			defer n.mu.Unlock()
			return ch.state == live && n.proven
		})
	}
}

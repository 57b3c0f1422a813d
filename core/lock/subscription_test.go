package lock

import "testing"

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
// unsubscription is outstanding, the slot has moved.
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
	n.unsubscribed(sub, "key")
	if ch.state != dead || n.channels["key"] != nil || sub.channels["key"] != nil {
		t.Errorf("a slot that moved: got the state %v, kept %v and %v, want %v and not kept",
			ch.state, n.channels["key"] != nil, sub.channels["key"] != nil, dead)
	}
}

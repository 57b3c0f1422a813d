package lock

import "testing"

// aStation is one on which a key was subscribed to, without a connection.
func aStation(key string) (*bells, *station, *channel) {
	b := &bells{channels: map[string]*channel{}, stations: map[subscriber]*station{}, proven: true}
	st := &station{wake: publish, channels: map[string]*channel{}, asked: map[string]bool{}, leaving: map[string]int{}}
	ch := &channel{key: key, station: st, known: make(chan struct{}), tuned: true}
	b.channels[key], st.channels[key] = ch, ch
	return b, st, ch
}

// Who wants a key that is still subscribed to is told nothing by Redis, and
// hears of it at once; as long as Redis has said that it is.
func TestAKeyThatIsSubscribedToIsHeard(t *testing.T) {
	t.Parallel()
	for said, want := range map[bool]state{true: live, false: unknown} {
		b, st, ch := aStation("key")
		st.asked["key"] = said
		if err := b.settle(t.Context(), st, "key"); err != nil || ch.state != want {
			t.Errorf("subscribed %v: %v, and not %v, %v", said, ch.state, want, err)
		}
	}
}

// What Redis says of subscriptions that were given up does not end the one
// that was made since; one that nobody gave up has moved with its slot.
func TestOldUnsubscriptionsEndNothing(t *testing.T) {
	t.Parallel()
	b, st, ch := aStation("key")
	st.leaving["key"] = 3
	st.asked["key"] = false
	for range 3 {
		b.unsubscribed(st, "key")
		if ch.state != unknown {
			t.Fatal("an old one ended it")
		}
	}
	b.confirmed(st, "key")
	if ch.state != live {
		t.Error("it is not heard")
	}
	b.unsubscribed(st, "key")
	if ch.state != dead || b.channels["key"] != nil || st.channels["key"] != nil {
		t.Error("it moved, and is still counted on")
	}
}

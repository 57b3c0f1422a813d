package lock

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// silence is after how long without a message a connection is tried.
const silence = 30 * time.Second

// attune is what a client publishes once to see that it may.
const attune = "attune"

// station is a connection that hears of some channels. All but sending and sub
// is guarded by the bells' mutex.
type station struct {
	server   subscriber
	wake     string
	sub      *redis.PubSub
	channels map[string]*channel // that somebody wants

	sending sync.Mutex      // the order of what is sent is that of what is wanted
	asked   map[string]bool // the channels that were subscribed to, and whether Redis said so
	leaving map[string]int  // unsubscriptions that Redis did not confirm yet
}

func newStation(ctx context.Context, server subscriber, wake string) *station {
	return &station{
		server: server, wake: wake, sub: server.Subscribe(ctx),
		channels: map[string]*channel{}, asked: map[string]bool{}, leaving: map[string]int{},
	}
}

// settle subscribes to a channel that is wanted, and unsubscribes from one that
// is not.
func (b *bells) settle(ctx context.Context, st *station, key string) error {
	st.sending.Lock()
	defer st.sending.Unlock()
	b.mu.Lock()
	wanted := st.channels[key] != nil
	confirmed, asked := st.asked[key]
	switch {
	case wanted && !asked:
		st.asked[key] = false
	case !wanted && asked:
		delete(st.asked, key)
		st.leaving[key]++
	}
	b.mu.Unlock()
	sharded := st.wake == spublish
	switch {
	case wanted && confirmed:
		b.confirmed(st, key)
	case wanted == asked:
	case wanted && sharded:
		return st.sub.SSubscribe(ctx, key)
	case wanted:
		return st.sub.Subscribe(ctx, key)
	case sharded:
		return st.sub.SUnsubscribe(ctx, key)
	default:
		return st.sub.Unsubscribe(ctx, key)
	}
	return nil
}

// hear goes on until the connection fails or is closed.
func (b *bells) hear(st *station) {
	ctx := context.Background()
	for tried := false; ; {
		message, err := st.sub.ReceiveTimeout(ctx, silence)
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && !tried {
			tried = true
			if err = st.sub.Ping(ctx); err == nil {
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
			if m.Payload != attune {
				b.ring(m.Channel)
			}
		case *redis.Subscription:
			if strings.HasSuffix(m.Kind, "unsubscribe") {
				b.unsubscribed(st, m.Channel)
			} else {
				b.confirmed(st, m.Channel)
			}
		}
	}
}

// confirmed notes that Redis has subscribed this client.
func (b *bells) confirmed(st *station, key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, asked := st.asked[key]; asked {
		st.asked[key] = true
	}
	ch := st.channels[key]
	switch {
	case ch == nil || ch.state != unknown:
	case b.proven:
		ch.state = live
		close(ch.known)
	case ch == b.trial:
		go b.attune(st, ch)
	}
}

// attune publishes something itself before anybody counts on being told: Redis
// notes each refusal of what a script publishes.
func (b *bells) attune(st *station, ch *channel) {
	ctx, cancel := context.WithTimeout(context.Background(), tuning)
	defer cancel()
	cmd := redis.NewIntCmd(ctx, strings.ToLower(st.wake), ch.key, attune)
	err := st.server.Process(ctx, cmd)
	if err == nil {
		err = cmd.Err() // of a client whose Process does not wait
	}
	if err != nil {
		b.silence(st, err)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trial == ch {
		b.trial, b.proven = nil, true
		ch.state = live
		close(ch.known)
		b.proceed()
	}
}

func (b *bells) unsubscribed(st *station, key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if st.leaving[key] > 1 {
		st.leaving[key]--
		return
	}
	if st.leaving[key] == 1 {
		delete(st.leaving, key)
		return
	}
	delete(st.asked, key) // the slot has moved
	if ch := st.channels[key]; ch != nil {
		b.drop(ch)
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

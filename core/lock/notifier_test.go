package lock_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
)

// inner is a Redis in a bubble of synctest. It notes when a client sends SUBSCRIBE or
// PUBLISH, but not what scripts publish. A test can tell it to refuse either, or to close
// the connection on it.
type inner struct {
	*miniredis.Miniredis
	dialer *deafDialer

	mu      sync.Mutex
	at      map[string][]time.Time
	refuses string
	hangsUp string
}

func newInner(t *testing.T) *inner {
	t.Helper()
	in := &inner{Miniredis: miniredis.NewMiniRedis(), at: map[string][]time.Time{}}
	in.ClockTTL(true)
	in.dialer = &deafDialer{via: func(context.Context, string, string) (net.Conn, error) { return redistest.DialBubble(in.Miniredis) }}
	conn, err := redistest.DialBubble(in.Miniredis) // starts it
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	in.Server().SetPreHook(func(peer *server.Peer, command string, _ ...string) bool {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.at[command] = append(in.at[command], time.Now())
		switch command {
		case in.refuses:
			peer.WriteError("NOPERM User has no permissions")
			return true
		case in.hangsUp:
			peer.Close()
			return true
		}
		return false
	})
	t.Cleanup(in.Close)
	return in
}

// received returns when the server received a command.
func (in *inner) received(command string) []time.Time {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.at[command])
}

func (in *inner) set(refuses, hangsUp string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.refuses, in.hangsUp = refuses, hangsUp
}

// waits keeps a caller waiting for a key for as long as f runs.
func (in *inner) waits(t *testing.T, delay time.Duration, f func()) {
	t.Helper()
	rdb := redis.NewClient(redistest.InBubble(&redis.Options{Addr: "127.0.0.1:6379", Dialer: in.dialer.dial, ContextTimeoutEnabled: true, Protocol: 2}))
	defer rdb.Close()
	opts := &lock.Options{RetryDelay: delay, Wait: 24 * time.Hour, Lease: 24 * time.Hour, NoRenewal: true, Budget: time.Second}
	held, err := locker(t, rdb, "neap:notifier", opts).Try(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	l := locker(t, rdb, "neap:notifier", opts)
	granted := make(chan error)
	go func() { granted <- l.Do(t.Context(), "key", fine) }()
	f()
	release(t, held)
	if err := <-granted; err != nil {
		t.Errorf("Do by the waiter: got %v, want no error", err)
	}
	time.Sleep(time.Minute) // until no subscription is left
	synctest.Wait()
}

// A connection that is silent for some time is pinged. It is closed if it does not answer
// in the same time, and kept if it answers.
func TestASilentConnectionIsClosed(t *testing.T) {
	t.Parallel()
	const silence, delay = 30 * time.Second, 5 * time.Second
	synctest.Test(t, func(t *testing.T) {
		in := newInner(t)
		in.waits(t, delay, func() {
			time.Sleep(10*silence + silence/2)
			if subscribed, pings := in.received("SUBSCRIBE"), in.received("PING"); len(subscribed) != 1 || len(pings) != 10 {
				t.Errorf("got %d subscriptions and %d pings, want 1 and 10", len(subscribed), len(pings))
			}
			in.dialer.deaf.Store(true)
			deaf := time.Now()
			time.Sleep(2*silence + delay)
			in.dialer.deaf.Store(false)
			time.Sleep(delay)
			subscribed := in.received("SUBSCRIBE")
			if len(subscribed) < 2 || subscribed[1].Sub(deaf) < silence || subscribed[1].Sub(deaf) > 2*silence+delay {
				t.Errorf("deaf from %v on: got subscriptions at %v, want the second %v to %v later",
					deaf, subscribed, silence, 2*silence+delay)
			}
		})
	})
}

// A client that may not subscribe, or not publish, tries again a minute later.
func TestARefusedSubscriptionBacksOff(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"SUBSCRIBE", "PUBLISH"} {
		synctest.Test(t, func(t *testing.T) {
			in := newInner(t)
			in.set(command, "")
			in.waits(t, 100*time.Millisecond, func() {
				time.Sleep(time.Minute - time.Second)
				if n := len(in.received(command)); n != 1 {
					t.Errorf("got %d attempts at %s in a minute, want 1", n, command)
				}
				time.Sleep(2 * time.Second)
				if n := len(in.received(command)); n != 2 {
					t.Errorf("got %d attempts at %s in more than a minute, want 2", n, command)
				}
			})
		})
	}
}

// After a connection has failed, the next attempt comes at least a second later.
func TestAFailedSubscriptionBacksOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := newInner(t)
		in.set("", "SUBSCRIBE")
		in.waits(t, 100*time.Millisecond, func() {
			const seconds = 20
			time.Sleep(seconds * time.Second)
			at := in.received("SUBSCRIBE")
			for i := range at[2:] { // go-redis itself tries a second time at once
				if after := at[i+2].Sub(at[i]); after < time.Second {
					t.Errorf("got an attempt %v after the last but one, want 1s at least", after)
				}
			}
			if len(at) < seconds/2 {
				t.Errorf("got %d attempts in %d s, want %d at least", len(at), seconds, seconds/2)
			}
		})
	})
}

// Each new connection is proven again, because permissions can be taken away.
func TestEachConnectionIsProvenAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := newInner(t)
		in.waits(t, 100*time.Millisecond, func() {
			time.Sleep(time.Second)
			if n := len(in.received("PUBLISH")); n != 1 {
				t.Errorf("got %d proofs of the connection, want 1", n)
			}
			in.dialer.hangUp()
			time.Sleep(5 * time.Second)
			if subscribed, n := in.received("SUBSCRIBE"), len(in.received("PUBLISH")); len(subscribed) < 2 || n != 2 {
				t.Errorf("got %d proofs and subscriptions at %v, want 2 proofs and at least 2 subscriptions",
					n, subscribed)
			}
		})
	})
}

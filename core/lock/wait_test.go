package lock_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// waiting has a caller wait for a key that another client holds. release gives it free,
// and returns how long the waiter then took to get it.
type waiting struct {
	l       *lock.Locker
	held    *lock.Lock
	granted chan error
	at      atomic.Int64
}

func wait(t *testing.T, l, holder *lock.Locker, key string) *waiting {
	t.Helper()
	held, err := holder.Try(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	w := &waiting{l: l, held: held, granted: make(chan error, 1)}
	go func() {
		w.granted <- l.Do(t.Context(), key, func(context.Context) error {
			w.at.Store(time.Now().UnixNano())
			return nil
		})
	}()
	return w
}

func (w *waiting) release(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	release(t, w.held)
	if err := <-w.granted; err != nil {
		t.Errorf("Do by the waiter: got %v, want no error", err)
	}
	return time.Duration(w.at.Load() - began.UnixNano())
}

// gets waits until the waiter has had the lock.
func (w *waiting) gets(t *testing.T) {
	t.Helper()
	select {
	case err := <-w.granted:
		if err != nil {
			t.Errorf("Do by the waiter: got %v, want no error", err)
		}
	case <-time.After(soon):
		t.Fatalf("the waiter: got no lock within %v, want it: it is free", soon)
	}
}

// unasking has a RetryDelay so long that a waiter gets nothing by asking again. A lease
// is 30 s.
func unasking() *lock.Options { return calm(lock.Options{RetryDelay: time.Hour}) }

// soon is shorter than any lease or RetryDelay of unasking.
const soon = 10 * time.Second

// asksWith waits until the record says how to wake the waiter, which stands in line.
func asksWith(t *testing.T, admin redis.UniversalClient, record, how string) {
	t.Helper()
	redistest.Await(t, soon, "the waiter to ask for "+how, func() bool {
		got, _ := admin.HGet(t.Context(), record, "wake").Result()
		return strings.HasPrefix(got, how+" ")
	})
}

func recordOf(prefix, key string) string { return prefix + ":lock:test:{" + key + "}" }

func TestAReleaseElsewhereWakesWaiters(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		l, holder := locker(t, rdb, prefix, unasking()), locker(t, rdb, prefix, calm(lock.Options{}))
		how := "PUBLISH"
		if _, ok := rdb.(*redis.ClusterClient); ok {
			how = "SPUBLISH"
		}
		for _, key := range []string{"a", "b", "a"} {
			w := wait(t, l, holder, key)
			asksWith(t, admin, recordOf(prefix, key), how)
			if took := w.release(t); took > soon {
				t.Errorf("the waiter was woken after %v, want within %v", took, soon)
			}
		}
		w := wait(t, l, holder, "c")
		asksWith(t, admin, recordOf(prefix, "c"), how)
		if was, err := holder.ForceRelease(t.Context(), "c"); !was || err != nil {
			t.Errorf("ForceRelease: got %v, %v, want true and no error", was, err)
		}
		w.gets(t)
		_ = w.held.Release(t.Context())
	})
}

// A caller that waits behind a lock of its own process finds out that another process has
// forced it open. It is not woken, and the holder does not know.
func TestALockOfThisProcessIsForcedOpenElsewhere(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		l := locker(t, rdb, prefix, calm(lock.Options{Lease: 24 * time.Hour, NoRenewal: true}))
		w := wait(t, l, l, "key")
		inLine(t, l, 1)
		if was, err := locker(t, rdb, prefix, nil).ForceRelease(t.Context(), "key"); !was || err != nil {
			t.Fatalf("ForceRelease: got %v, %v, want true and no error", was, err)
		}
		w.gets(t)
		if err := w.held.Release(t.Context()); !errors.Is(err, lock.ErrLost) && !errors.Is(err, lock.ErrTakenByOther) {
			t.Errorf("Release of what was forced: got %v, want ErrLost or ErrTakenByOther", err)
		}
	})
}

// A lease that ends by itself wakes no waiter. The waiter asks when the lease is over,
// long before a RetryDelay has passed.
func TestALeaseThatLapsesIsNotMissed(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		l := locker(t, rdb, prefix, unasking())
		holder := locker(t, rdb, prefix, &lock.Options{Lease: 6 * time.Second, Budget: 2 * time.Second, NoRenewal: true})
		wait(t, l, holder, "key").gets(t)
	})
}

// deafDialer makes connections that lose all messages that are published to them, once
// they have subscribed and deaf is set.
type deafDialer struct {
	deaf atomic.Bool
	via  func(ctx context.Context, network, addr string) (net.Conn, error) // nil means the address itself

	mu    sync.Mutex
	conns []*deafConn
}

type deafConn struct {
	net.Conn
	of         *deafDialer
	subscribes atomic.Bool
}

func (d *deafDialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	via := d.via
	if via == nil {
		via = new(net.Dialer).DialContext
	}
	conn, err := via(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &deafConn{Conn: conn, of: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns = append(d.conns, c)
	return c, nil
}

// hangUp closes the connections that have subscribed.
func (d *deafDialer) hangUp() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.conns {
		if c.subscribes.Load() {
			c.Close()
		}
	}
}

func (c *deafConn) Write(p []byte) (int, error) {
	if strings.Contains(strings.ToLower(string(p)), "subscribe") {
		c.subscribes.Store(true)
	}
	return c.Conn.Write(p)
}

func (c *deafConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.subscribes.Load() || !c.of.deaf.Load() {
			return n, err
		}
	}
}

// A waiter that is not told of a release, or whose notification is lost, asks a
// RetryDelay later.
func TestALostWakeUpCostsARetryDelay(t *testing.T) {
	t.Parallel()
	still := redistest.Witness(t)
	srv := redistest.NewStandalone(t)
	user := redistest.NewUser(t, redistest.Rules+" -subscribe -publish resetchannels", srv)
	mute := srv.Client(t, func(o *redis.Options) { o.Username = user })
	pipe, err := srv.Client(t).AsyncAutoPipeline()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pipe.Close() })
	dialer := &deafDialer{}
	deaf := srv.Client(t, func(o *redis.Options) { o.Dialer = dialer.dial })
	prefix := srv.Prefix(t)
	holder := locker(t, srv.Client(t), prefix, calm(lock.Options{}))
	for name, rdb := range map[string]script.Client{
		"messages lost": deaf, "may not subscribe": mute, "pipelined": pipe, "cannot subscribe": onlyProcess{srv.Client(t)},
	} {
		l, err := lock.New(storetest.At(t, rdb, prefix), "test", calm(lock.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			dialer.deaf.Store(false)
			w := wait(t, l, holder, "key")
			if name == "messages lost" {
				asksWith(t, srv.Admin(t), recordOf(prefix, "key"), "PUBLISH")
				dialer.deaf.Store(true)
			}
			inLine(t, l, 1)
			if took := w.release(t); took > defaultRetryDelay+max(time.Second, 2*still()) {
				t.Errorf("%s: the waiter got the lock after %v, want within %v or a little more",
					name, took, defaultRetryDelay)
			}
		}
	}
}

// onlyProcess is a client that has no other method than Process.
type onlyProcess struct{ script.Client }

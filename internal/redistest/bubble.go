package redistest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Bubble is a miniredis in a bubble of testing/synctest, whose keys end by the clock of the bubble.
func Bubble(tb testing.TB) *miniredis.Miniredis {
	tb.Helper()
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	tb.Cleanup(m.Close)
	return m
}

// Miniredis starts a miniredis whose keys end by its clock, and makes a client of it.
func Miniredis(tb testing.TB) (*miniredis.Miniredis, *redis.Client) {
	tb.Helper()
	m := miniredis.RunT(tb)
	m.ClockTTL(true)
	opts := &redis.Options{Addr: m.Addr(), ContextTimeoutEnabled: true}
	patient(opts)
	rdb := redis.NewClient(opts)
	tb.Cleanup(func() { rdb.Close() })
	return m, rdb
}

// BubbleClient is a client of a miniredis that stands in the same synctest bubble: it
// reaches it without a socket, so that the bubble's time can pass.
func BubbleClient(tb testing.TB, m *miniredis.Miniredis) *redis.Client {
	tb.Helper()
	rdb := redis.NewClient(InBubble(&redis.Options{
		Addr:                  "127.0.0.1:1", // never dialled
		ContextTimeoutEnabled: true,
		Dialer:                func(context.Context, string, string) (net.Conn, error) { return DialBubble(m) },
	}))
	tb.Cleanup(func() {
		time.Sleep(time.Second) // of the bubble, which must not end before what rests in the background
		rdb.Close()
	})
	return rdb
}

// InBubble are the options of a client in a synctest bubble. Its callers do not wait for a connection: go-redis keeps
// their timers for the next callers of any client, and a timer of a bubble ends the process if it is used outside.
// Notifications of maintenance are off, since go-redis would make a queue of 6 MB for that many connections.
func InBubble(o *redis.Options) *redis.Options {
	o.PoolSize, o.PipelinePoolSize = 10_000, 10_000
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o
}

// DialBubble connects to a miniredis without a socket. Unlike those of a bare net.Pipe, writes do not wait for the
// server to read: it answers the first of many calls before it has read the last.
func DialBubble(m *miniredis.Miniredis) (net.Conn, error) {
	conn, err := m.Dial()
	if err != nil {
		return nil, err
	}
	b := &bufferedConn{Conn: conn}
	b.some = sync.NewCond(&b.mu)
	go b.send()
	return b, nil
}

// bufferedConn keeps what is written until the other end reads it.
type bufferedConn struct {
	net.Conn

	mu     sync.Mutex
	some   *sync.Cond
	buffer bytes.Buffer
	closed bool
}

func (b *bufferedConn) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, net.ErrClosed
	}
	defer b.some.Signal()
	return b.buffer.Write(p)
}

func (b *bufferedConn) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.some.Signal()
	return b.Conn.Close()
}

// send hands on what was written, until the connection is closed at either end.
func (b *bufferedConn) send() {
	for {
		b.mu.Lock()
		for b.buffer.Len() == 0 && !b.closed {
			b.some.Wait()
		}
		p, closed := bytes.Clone(b.buffer.Bytes()), b.closed
		b.buffer.Reset()
		b.mu.Unlock()
		if closed {
			return
		}
		if _, err := b.Conn.Write(p); err != nil {
			_ = b.Close()
			return
		}
	}
}

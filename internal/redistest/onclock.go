package redistest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed onclock.lua
var onClock string

// OnClock runs the scripts of a real Redis by the clock of this process: in a bubble of
// testing/synctest, by that of the bubble. So a test decides what time it is for a server that
// counts as servers do, and not as miniredis does. Commands that are no scripts run by the server's
// own clock.
//
// Keys do not end by themselves: a script that uses a key after its end deletes it first. The end
// of a key stands beside it, as <key>!ends.
type OnClock struct {
	// Step is how far the clock moves when a script reads it, as before Redis 7.2 it could.
	Step time.Duration
	// Ahead is how far the clock of Redis is ahead of that of this process, at the beginning.
	Ahead time.Duration

	mu    sync.Mutex
	texts map[string]string // of scripts, by their SHA
}

// Client is a client of the harness for a bubble.
func (c *OnClock) Client(tb testing.TB, s *Server) *redis.Client {
	o := InBubble(s.options(adminUser, adminPassword))
	o.ContextTimeoutEnabled = true
	o.Dialer = func(_ context.Context, _, addr string) (net.Conn, error) { return c.dial(addr) }
	rdb := redis.NewClient(o)
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

// Lives sets how long a key lives that a script has made: for ever if d is 0.
func (c *OnClock) Lives(tb testing.TB, rdb *redis.Client, key string, d time.Duration) {
	tb.Helper()
	var err error
	if d == 0 {
		err = errors.Join(rdb.Persist(tb.Context(), key).Err(), rdb.Del(tb.Context(), key+"!ends").Err())
	} else {
		err = rdb.Set(tb.Context(), key+"!ends", c.Now().Add(d).UnixMilli(), time.Hour).Err()
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// dial connects to a server. The connection has no deadlines: those of a bubble mean nothing to it.
func (c *OnClock) dial(addr string) (net.Conn, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &onClockConn{Conn: conn, of: c}, nil
}

type onClockConn struct {
	net.Conn

	of   *OnClock
	rest []byte // of a request that is not yet written as a whole
}

func (*onClockConn) SetDeadline(time.Time) error      { return nil }
func (*onClockConn) SetReadDeadline(time.Time) error  { return nil }
func (*onClockConn) SetWriteDeadline(time.Time) error { return nil }

// Write hands on the requests that are whole.
func (c *onClockConn) Write(p []byte) (int, error) {
	c.rest = append(c.rest, p...)
	var out bytes.Buffer
	for len(c.rest) > 0 {
		from := bytes.NewReader(c.rest)
		r := bufio.NewReader(from)
		_, raw, err := readRequest(r)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		c.rest = c.rest[len(raw):]
		out.Write(c.of.changed(raw))
	}
	if _, err := c.Conn.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// changed is a request as the server gets it.
func (c *OnClock) changed(raw []byte) []byte {
	all := words(raw)
	c.mu.Lock()
	defer c.mu.Unlock()
	var text string
	switch name := strings.ToLower(all[0]); {
	case name == "eval":
		text = all[1]
		if c.texts == nil {
			c.texts = map[string]string{}
		}
		c.texts[sha(text)] = text
		all[1] = onClock + text
	case name == "evalsha" && c.texts[all[1]] != "":
		all[1] = sha(onClock + c.texts[all[1]])
	case name == "evalsha": // the client then sends the text
		all[1] = strings.Repeat("0", len(all[1]))
	default:
		return raw
	}
	all = append(all, fmt.Sprintf("%d %d", c.now().UnixMicro(), c.Step.Microseconds()))
	var out bytes.Buffer
	fmt.Fprintf(&out, "*%d\r\n", len(all))
	for _, word := range all {
		fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(word), word)
	}
	return out.Bytes()
}

// Now is what the clock of Redis shows.
func (c *OnClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *OnClock) now() time.Time { return time.Now().Add(c.Ahead) }

// SetBack sets the clock of Redis back.
func (c *OnClock) SetBack(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Ahead -= d
}

func sha(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// words are those of a request that was read.
func words(raw []byte) (all []string) {
	_, raw, _ = bytes.Cut(raw, []byte("\r\n"))
	for len(raw) > 0 {
		header, rest, _ := bytes.Cut(raw, []byte("\r\n"))
		n, _ := length(header)
		all, raw = append(all, string(rest[:n])), rest[n+2:]
	}
	return all
}

package redistest

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// Cutter connects to servers and cuts connections at any byte, in either direction. Clients use its
// [Cutter.Dial]. Its methods may be called from several goroutines.
type Cutter struct {
	cuts atomic.Int64

	mu    sync.Mutex
	rng   *rand.Rand
	most  int
	times int // Cut was called

	once  bool // CutOnce is to cut
	after int  // so many bytes more
	how   Fault
}

// NewCutter makes a cutter that cuts nothing yet.
func NewCutter(tb testing.TB) *Cutter {
	tb.Helper()
	return &Cutter{rng: Rand(tb)}
}

// Cut makes each present and future connection break after at most `most` more bytes. Half of them end by a reset,
// three in eight by an EOF, and one in eight falls silent. Cut(0) ends that.
func (c *Cutter) Cut(most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = most
	c.times++
}

// CutOnce cuts one connection: the one that has to carry a byte when `after` more bytes have passed on all
// connections together. It replaces an earlier call; below 0 it cuts nothing.
func (c *Cutter) CutOnce(after int, how Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.once, c.after, c.how = after >= 0, after, how
}

// carry returns how many of n bytes pass before CutOnce cuts.
func (c *Cutter) carry(n int) (carried int, how Fault, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.once {
		return n, 0, false
	}
	carried = min(n, c.after)
	c.after -= carried
	if cut = carried < n; cut {
		c.once = false
	}
	return carried, c.how, cut
}

// draw says after how many more bytes a connection is cut, and how, if Cut was called since.
func (c *Cutter) draw(conn *cutConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn.drawn == c.times {
		return
	}
	conn.drawn, conn.endless = c.times, c.most == 0
	if c.most > 0 {
		conn.left, conn.how = 1+c.rng.IntN(c.most), []Fault{Silence, EOF, EOF, EOF, Reset, Reset, Reset, Reset}[c.rng.IntN(8)]
	}
}

// Cuts is how many connections were cut.
func (c *Cutter) Cuts() int64 { return c.cuts.Load() }

// Dial connects to a server: it is made for [redis.Options] and [redis.ClusterOptions] as their
// Dialer.
func (c *Cutter) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &cutConn{TCPConn: conn.(*net.TCPConn), by: c, endless: true}, nil
}

// cutConn carries some bytes, of both directions together, and then none.
type cutConn struct {
	*net.TCPConn

	by *Cutter

	mu      sync.Mutex
	drawn   int // at which Cut
	endless bool
	left    int
	how     Fault
	cut     bool
}

// carry takes up to n of the bytes that are left, and cuts the connection if there are
// no more.
func (c *cutConn) carry(n int) (carried int, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return 0, true
	}
	if c.by.draw(c); c.endless {
		if carried, c.how, c.cut = c.by.carry(n); c.cut {
			c.by.cuts.Add(1)
		}
		return carried, c.cut
	}
	carried = min(n, c.left)
	c.left -= carried
	if carried < n {
		c.cut = true
		c.by.cuts.Add(1)
	}
	return carried, c.cut
}

// end is what the server sees of a cut.
func (c *cutConn) end() {
	switch c.how {
	case EOF:
		_ = c.CloseWrite()
	case Reset:
		_ = c.SetLinger(0)
		c.Close()
	case Silence: // nothing
	}
}

// Write never fails by a cut, since a kernel takes bytes that do not arrive.
func (c *cutConn) Write(b []byte) (int, error) {
	n, cut := c.carry(len(b))
	if n > 0 {
		if _, err := c.TCPConn.Write(b[:n]); err != nil {
			return 0, err
		}
	}
	if cut {
		c.end()
	}
	return len(b), nil
}

func (c *cutConn) Read(b []byte) (int, error) {
	for {
		n, err := c.TCPConn.Read(b)
		if n == 0 || err != nil {
			if _, cut := c.carry(0); cut && c.how == Reset {
				return 0, syscall.ECONNRESET
			}
			return n, err
		}
		n, cut := c.carry(n)
		if cut {
			c.end()
		}
		switch {
		case n > 0:
			return n, nil
		case c.how == EOF:
			return 0, io.EOF
		case c.how == Reset:
			return 0, syscall.ECONNRESET
		}
		// Silence lasts until the deadline.
	}
}

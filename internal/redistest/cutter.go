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

	mu   sync.Mutex
	rng  *rand.Rand
	most int
}

// NewCutter makes a cutter that cuts nothing yet.
func NewCutter(tb testing.TB) *Cutter {
	tb.Helper()
	return &Cutter{rng: Rand(tb)}
}

// Cut has each connection that is made from now on cut after some bytes, that many at most: in order, by
// a reset or by silence. 0 ends it, for new connections.
func (c *Cutter) Cut(most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = most
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
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.most == 0 {
		return conn, nil
	}
	return &cutConn{TCPConn: conn.(*net.TCPConn), cuts: &c.cuts, left: 1 + c.rng.IntN(c.most), how: Fault(c.rng.IntN(3))}, nil
}

// cutConn carries some bytes, of both directions together, and then none.
type cutConn struct {
	*net.TCPConn

	cuts *atomic.Int64
	how  Fault

	mu   sync.Mutex
	left int
	cut  bool
}

// carry takes up to n of the bytes that are left, and cuts the connection if there are
// no more.
func (c *cutConn) carry(n int) (carried int, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	carried = min(n, c.left)
	c.left -= carried
	if carried < n && !c.cut {
		c.cut = true
		c.cuts.Add(1)
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

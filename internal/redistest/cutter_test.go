package redistest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

const (
	ping = "PING\r\n"
	pong = "+PONG\r\n"
)

// dialCutter connects through a cutter.
func dialCutter(t *testing.T, c *Cutter, s *Server) net.Conn {
	t.Helper()
	conn, err := c.Dial(context.WithoutCancel(t.Context()), "tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// pings sends PING up to most times, and returns how many replies came, and the error that ended them. It waits for a
// reply until it comes or the connection is cut.
func pings(t *testing.T, c *Cutter, conn net.Conn, most int) (replies int, err error) {
	t.Helper()
	before, began := c.Cuts(), time.Now()
	in := bufio.NewReader(conn)
	for ; replies < most; replies++ {
		if _, err := io.WriteString(conn, ping); err != nil {
			t.Fatalf("a write: got %v, want no error, since only a read sees a cut", err)
		}
		line := ""
		for line != pong {
			_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) // fails if it was reset
			part, err := in.ReadString('\n')
			line += part
			late := errors.Is(err, os.ErrDeadlineExceeded)
			if late && c.Cuts() == before && time.Since(began) < 30*time.Second {
				continue // the machine stood still
			}
			if err != nil {
				return replies, err
			}
		}
	}
	return replies, nil
}

// TestCutterCuts each connection after so many bytes at most, in each way.
func TestCutterCuts(t *testing.T) {
	t.Parallel()
	s, c := Standalone(t), NewCutter(t)
	const connections, most = 100, 200
	c.Cut(most)
	ways := map[error]int{}
	for i := range connections {
		replies, err := pings(t, c, dialCutter(t, c, s), most)
		if carried := replies * len(ping+pong); err == nil || carried > most {
			t.Fatalf("connection %d: got %d bytes and then %v, want %d bytes at most and an error", i, carried, err, most)
		}
		if got := c.Cuts(); got != int64(i)+1 {
			t.Fatalf("after %d connections: got %d cuts, want one each", i+1, got)
		}
		for _, way := range []error{io.EOF, syscall.ECONNRESET, os.ErrDeadlineExceeded} {
			if errors.Is(err, way) {
				ways[way]++
			}
		}
	}
	if len(ways) != 3 {
		t.Errorf("got the ways %v, want an end, a reset and silence", ways)
	}
}

// TestCutterLeavesConnectionsAlone until Cut is called, which also concerns those that are there, and after Cut(0).
func TestCutterLeavesConnectionsAlone(t *testing.T) {
	t.Parallel()
	s, c := Standalone(t), NewCutter(t)
	const many = 1000
	whole := func(what string, conn net.Conn) {
		t.Helper()
		if replies, err := pings(t, c, conn, many); replies != many || err != nil {
			t.Errorf("%s: got %d replies, %v, want %d and no error", what, replies, err, many)
		}
	}
	first := dialCutter(t, c, s)
	whole("a new cutter", first)
	if got := c.Cuts(); got != 0 {
		t.Errorf("a new cutter: got %d cuts, want none", got)
	}
	c.Cut(1 << 30)
	if _, err := pings(t, c, first, 1); err != nil {
		t.Errorf("a connection with many bytes left: got %v, want no error", err)
	}
	c.Cut(100)
	if _, err := pings(t, c, first, many); err == nil {
		t.Error("a connection that was there at the time of Cut: got no error, want one")
	}
	c.Cut(1 << 30)
	spared := dialCutter(t, c, s)
	if _, err := pings(t, c, spared, 1); err != nil {
		t.Errorf("a connection with many bytes left: got %v, want no error", err)
	}
	c.Cut(0)
	whole("one with bytes left, after Cut(0)", spared)
	whole("a new one after Cut(0)", dialCutter(t, c, s))
	if got := c.Cuts(); got != 1 {
		t.Errorf("got %d cuts, want 1", got)
	}
}

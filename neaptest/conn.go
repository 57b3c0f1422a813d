package neaptest

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

// conn is what a client gets. When the other end is closed it behaves as a socket: go-redis finds that out
// before it writes, and what is written all the same fails with EPIPE.
type conn struct {
	net.Conn

	gone <-chan struct{} // closed with the other end
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if errors.Is(err, io.ErrClosedPipe) {
		err = &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
	}
	return n, err
}

// SyscallConn is by what go-redis looks whether an idle connection is still alive.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	select {
	case <-c.gone:
		return nil, io.EOF
	default:
		return alive{}, nil
	}
}

// alive is a connection with nothing to read.
type alive struct{}

func (alive) Control(func(uintptr)) error    { return nil }
func (alive) Read(func(uintptr) bool) error  { return nil }
func (alive) Write(func(uintptr) bool) error { return nil }

// noted is the other end.
type noted struct {
	net.Conn

	closed chan struct{}
	once   sync.Once
}

func (n *noted) Close() error {
	n.once.Do(func() { close(n.closed) })
	return n.Conn.Close()
}

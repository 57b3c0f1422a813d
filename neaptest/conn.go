package neaptest

import (
	"io"
	"net"
	"sync"
	"syscall"
)

// conn is what a client gets. Before go-redis writes, it finds out that the other end is closed, as it does of a socket.
type conn struct {
	net.Conn

	gone <-chan struct{} // closed with the other end
}

// SyscallConn is how go-redis finds out whether an idle connection is still alive.
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

// noted is the other end. It notes that it was closed.
type noted struct {
	net.Conn

	closed chan struct{}
	once   sync.Once
}

func (n *noted) Close() error {
	n.once.Do(func() { close(n.closed) })
	return n.Conn.Close()
}

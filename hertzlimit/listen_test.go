package hertzlimit_test

import (
	"net"
	"slices"
	"testing"

	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/config"
	"github.com/cloudwego/hertz/pkg/network/standard"
	"github.com/cloudwego/netpoll"
)

// listens makes a server that listens on loopback until the test's cleanup. Call Run when
// it has its routes.
type listens func(t testing.TB, opts []config.Option) (h *server.Hertz, address string)

// listen makes one on the transport that Hertz uses by itself on Linux.
func listen(t testing.TB, opts []config.Option) (h *server.Hertz, address string) {
	t.Helper()
	ln := local(t)
	poll, err := netpoll.ConvertListener(ln)
	if err != nil {
		t.Fatal(err)
	}
	return made(t, listener{poll, ln}, opts)
}

// listenStandard makes one on the transport that Hertz uses for TLS and on Windows.
func listenStandard(t testing.TB, opts []config.Option) (h *server.Hertz, address string) {
	t.Helper()
	return made(t, local(t), append(slices.Clone(opts), server.WithTransport(standard.NewTransporter)))
}

func local(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func made(t testing.TB, ln net.Listener, opts []config.Option) (h *server.Hertz, address string) {
	t.Helper()
	h = server.New(append(slices.Clone(opts), server.WithListener(ln), server.WithDisablePrintRoute(true))...)
	t.Cleanup(func() {
		_ = h.Close()
		_ = ln.Close() // Run may not have begun
	})
	return h, ln.Addr().String()
}

// listener is a listener of netpoll. That of netpoll closes its file descriptor twice, and
// with the second time what has got the same number meanwhile in another test. This one
// leaves the descriptor to the garbage collector.
type listener struct {
	netpoll.Listener
	net net.Listener
}

func (l listener) Close() error { return l.net.Close() }

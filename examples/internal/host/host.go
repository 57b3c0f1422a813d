// Package host serves an example over real HTTP, whatever its framework.
package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Server is what an http.Server has, and what [By] makes of two functions.
type Server interface {
	Serve(ln net.Listener) error
	Shutdown(ctx context.Context) error
}

// HTTP serves a handler.
func HTTP(h http.Handler) Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
}

// By serves by the methods of a framework that has other names for them.
func By(serve func(net.Listener) error, shutdown func(context.Context) error) Server {
	return functions{serve, shutdown}
}

type functions struct {
	serve    func(net.Listener) error
	shutdown func(context.Context) error
}

func (f functions) Serve(ln net.Listener) error        { return f.serve(ln) }
func (f functions) Shutdown(ctx context.Context) error { return f.shutdown(ctx) }

// Host is a server that runs.
type Host struct {
	URL   string
	Ended <-chan error // what Serve returned, for whoever does not call Stop

	server Server
	ln     net.Listener
}

// Listen has the server serve at an address.
func Listen(ctx context.Context, addr string, s Server) (*Host, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	return &Host{URL: urlOf(ln.Addr()), Ended: ended, server: s, ln: ln}, nil
}

// urlOf is where a client on this machine finds a listener.
func urlOf(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://127.0.0.1:%d", tcp.Port)
	}
	return "http://" + addr.String()
}

// Stop lets requests end that have begun, for as long as they may take.
func (h *Host) Stop(ctx context.Context, longest time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest)
	defer cancel()
	err := h.server.Shutdown(ctx)
	h.ln.Close() // a server that had not begun to serve has not closed it
	served := <-h.Ended
	if errors.Is(served, http.ErrServerClosed) || errors.Is(served, net.ErrClosed) {
		served = nil
	}
	return errors.Join(err, served)
}

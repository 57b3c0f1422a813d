package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// host is a server that runs.
type host struct {
	url    string
	server server
	ln     net.Listener
	ended  chan error // what Serve returned
}

func listen(ctx context.Context, f framework, addr string, endpoints []endpoint) (*host, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%w; choose another address with -addr", err)
	}
	h := &host{url: urlOf(ln.Addr()), server: f.serve(endpoints), ln: ln, ended: make(chan error, 1)}
	go func() { h.ended <- h.server.Serve(ln) }()
	return h, nil
}

// urlOf is where a client on this machine finds a listener.
func urlOf(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://127.0.0.1:%d", tcp.Port)
	}
	return "http://" + addr.String()
}

// stop lets requests end that have begun.
func (h *host) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest+5*time.Second)
	defer cancel()
	err := h.server.Shutdown(ctx)
	h.ln.Close() // a server that had not begun to serve has not closed it
	served := <-h.ended
	if errors.Is(served, http.ErrServerClosed) || errors.Is(served, net.ErrClosed) {
		served = nil
	}
	return errors.Join(err, served)
}

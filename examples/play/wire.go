package main

import (
	"context"
	"errors"
	"net"
	"sync"
)

// wire is all connections to Redis. While it is cut there is none, as if Redis were stopped.
type wire struct {
	mu   sync.Mutex
	cut  bool
	open map[net.Conn]struct{}
}

func newWire() *wire { return &wire{open: map[net.Conn]struct{}{}} }

var errStopped = errors.New("redis is stopped")

func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return nil, errStopped
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w.open[conn] = struct{}{}
	return conn, nil
}

func (w *wire) set(up bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = !up
	if up {
		return
	}
	for conn := range w.open {
		conn.Close()
	}
	clear(w.open)
}

func (w *wire) up() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.cut
}

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// distance is the round trip of the cells whose server is not on this machine.
const distance = 2 * time.Millisecond

// away is the server at a distance: a proxy passes on what it gets half of that later. It ends with the
// scope.
func (s *server) away(ctx context.Context, opened *scope) (*server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{to: s.addr}
	p.running.Go(func() { p.serve(listener) })
	opened.ends(p.running.Wait)
	opened.ends(p.close)
	opened.onClose(listener.Close)
	far := *s
	far.addr = listener.Addr().String()
	return &far, nil
}

type proxy struct {
	to      string
	running sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

func (p *proxy) serve(l net.Listener) {
	for {
		near, err := l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.to) //nolint:noctx // it ends with the proxy
		if err != nil {
			_ = near.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, near, far)
		p.mu.Unlock()
		p.running.Go(func() { pass(near, far) })
		p.running.Go(func() { pass(far, near) })
	}
}

func (p *proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
}

// late is what was read, and when it arrives.
type late struct {
	data []byte
	at   time.Time
}

// pass passes on what one connection reads, half of the distance later.
func pass(from, to net.Conn) {
	way := make(chan late, 1024)
	var writing sync.WaitGroup
	writing.Go(func() {
		var failed error
		for l := range way {
			time.Sleep(time.Until(l.at))
			if failed == nil {
				_, failed = to.Write(l.data)
			}
		}
		_ = to.Close()
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			way <- late{append([]byte(nil), buffer[:n]...), time.Now().Add(distance / 2)}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				_ = to.Close()
			}
			break
		}
	}
	close(way)
	writing.Wait()
}

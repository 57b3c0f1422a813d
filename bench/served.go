package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"
)

// served is a handler behind net/http's server, and a client of it, which takes
// less time and memory than that of net/http.
type served struct {
	server *http.Server
	client *fasthttp.HostClient
	ended  chan error
}

func serve(ctx context.Context, h http.Handler, connections int) (*served, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &served{
		server: &http.Server{Handler: h, ReadHeaderTimeout: time.Minute},
		client: &fasthttp.HostClient{Addr: listener.Addr().String(), MaxConns: connections},
		ended:  make(chan error, 1),
	}
	go func() { s.ended <- s.server.Serve(listener) }()
	return s, nil
}

func (s *served) close() error {
	s.client.CloseIdleConnections()
	err := s.server.Close()
	if ended := <-s.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// send posts a body with header fields, names and values, and fails where the
// answer is another than is wanted.
func (s *served) send(want int, path string, body []byte, header ...string) error {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.Header.SetMethod(fasthttp.MethodPost)
	request.SetRequestURI("http://" + s.client.Addr + path)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	request.SetBodyRaw(body)
	if err := s.client.Do(request, response); err != nil {
		return err
	}
	if got := response.StatusCode(); got != want {
		return fmt.Errorf("a request to %s was answered with %d, not %d", path, got, want)
	}
	return nil
}

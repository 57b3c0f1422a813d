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

// client sends requests to one server of this process. It takes less time and memory
// than the client of net/http.
type client struct{ *fasthttp.HostClient }

// serveHTTP is serve for net/http's server.
func (e *env) serveHTTP(ctx context.Context, h http.Handler, connections int) (client, error) {
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	return e.serve(ctx, connections, server.Serve, server.Close)
}

// serve has a server listen on a port of its own until the env ends.
func (e *env) serve(
	ctx context.Context, connections int, run func(net.Listener) error, stop func() error,
) (client, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return client{}, err
	}
	c := client{&fasthttp.HostClient{Addr: listener.Addr().String(), MaxConns: connections}}
	ended := make(chan error, 1)
	go func() { ended <- run(listener) }()
	e.onClose(func() error {
		c.CloseIdleConnections()
		err := stop()
		if fault := <-ended; !errors.Is(fault, http.ErrServerClosed) {
			err = errors.Join(err, fault)
		}
		return err
	})
	return c, nil
}

// post sends a body with header fields, names and values, and has the response read.
func (c client) post(path string, body []byte, read func(*fasthttp.Response) error, header ...string) error {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.Header.SetMethod(fasthttp.MethodPost)
	request.SetRequestURI("http://" + c.Addr + path)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	request.SetBodyRaw(body)
	if err := c.Do(request, response); err != nil {
		return err
	}
	return read(response)
}

// must reads no more than the status.
func must(status int) func(*fasthttp.Response) error {
	return func(r *fasthttp.Response) error {
		if got := r.StatusCode(); got != status {
			return fmt.Errorf("%w: the status is %d, not %d", errWrong, got, status)
		}
		return nil
	}
}

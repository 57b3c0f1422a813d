package fibertest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// Exchange is the part of a [gatetest.Exchange] that applications of every version of
// Fiber do with fasthttp.
type Exchange struct{ Ctx *fasthttp.RequestCtx }

// ContentLength is -1 for chunks.
func (x Exchange) ContentLength() int64 { return int64(x.Ctx.Request.Header.ContentLength()) }

// SetHeader sets a field of the response.
func (x Exchange) SetHeader(name, value string) { x.Ctx.Response.Header.Set(name, value) }

// AddHeader adds a line to the response.
func (x Exchange) AddHeader(name, value string) { x.Ctx.Response.Header.Add(name, value) }

// SetRequestHeader sets a field of the request.
func (x Exchange) SetRequestHeader(name, value string) { x.Ctx.Request.Header.Set(name, value) }

// DelRequestHeader removes a field from the request.
func (x Exchange) DelRequestHeader(name string) { x.Ctx.Request.Header.Del(name) }

// SetPeer replaces the peer's address.
func (x Exchange) SetPeer(address string) { x.Ctx.SetRemoteAddr(peer(address)) }

// peer is a net.Addr with any text.
type peer string

func (p peer) Network() string { return "tcp" }
func (p peer) String() string  { return string(p) }

// Rewrite does not use c.Path of Fiber, which overwrites the parameters of the route.
func (x Exchange) Rewrite(path string) { x.Ctx.URI().SetPath(path) }

// Body reads the body as it was sent.
func (x Exchange) Body() ([]byte, error) {
	if stream := x.Ctx.RequestBodyStream(); stream != nil {
		return io.ReadAll(stream)
	}
	return x.Ctx.Request.Body(), nil
}

// Stream sends chunks when the handlers have returned.
func (x Exchange) Stream(status int, chunks iter.Seq[string]) error {
	x.Ctx.SetStatusCode(status)
	x.Ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		for chunk := range chunks {
			_, _ = w.WriteString(chunk)
			_ = w.Flush()
		}
	})
	return nil
}

// Hijack takes the connection over when the handlers have returned.
func (x Exchange) Hijack(talk func(net.Conn)) error {
	x.Ctx.HijackSetNoResponse(true)
	x.Ctx.Hijack(talk)
	return nil
}

// Listen serves on loopback until the test's cleanup, with the functions of an
// application.
func Listen(t testing.TB, serve func(net.Listener) error, shutdown func(time.Duration) error) (address string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- serve(ln) }()
	t.Cleanup(func() {
		err := shutdown(0)
		_ = ln.Close() // when the server had not begun, it stopped nothing
		if err := errors.Join(err, <-served); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the server ended with %v, want no error or %v", err, context.DeadlineExceeded)
		}
	})
	return ln.Addr().String()
}

// Path writes a pattern of gatetest as Fiber does. Fiber's own syntax in it stays as it
// is.
func Path(pattern string) string {
	return named.ReplaceAllString(strings.ReplaceAll(pattern, "{...}", "*"), ":$1")
}

// named is a parameter in a pattern of gatetest, and not {4} of a regular expression.
var named = regexp.MustCompile(`\{([a-z]+)\}`)

package gatefiber_test

import (
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatefiber"
	"github.com/neap-go/neap/internal/redistest"
)

// Where others than a server of fasthttp serve a RequestCtx, as Fiber's adaptor to
// net/http does, a gate is left when the stream was read. Nothing tells when a connection
// has ended that was taken over, so the gate is left before.
func TestWithoutAServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handle func(c *fasthttp.RequestCtx)
		finish func(c *fasthttp.RequestCtx)
	}{
		"Body":      {stream, func(c *fasthttp.RequestCtx) { _ = c.Response.Body() }},
		"ReadOnly":  {stream, func(c *fasthttp.RequestCtx) { _, _ = io.Copy(io.Discard, onlyReads{c.Response.BodyStream()}) }},
		"Reset":     {stream, func(c *fasthttp.RequestCtx) { c.Response.Reset() }},
		"TakenOver": {func(c *fasthttp.RequestCtx) { c.Hijack(func(net.Conn) {}) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, calls := new(fasthttp.RequestCtx), 0
			left := gatefiber.AtEnd(ctx, func(*gate.Reply) { calls++ })
			c.handle(ctx)
			left(gatefiber.Captured(ctx, 100))
			if c.finish != nil {
				if calls != 0 {
					t.Error("the gate was left before the stream")
				}
				c.finish(ctx)
			}
			if calls != 1 {
				t.Errorf("the gate was left %d times, want once", calls)
			}
		})
	}
}

// TestAGateThatEndsItsGoroutine keeps no gate further out from being left.
func TestAGateThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	ctx, calls := new(fasthttp.RequestCtx), 0
	inner := gatefiber.AtEnd(ctx, func(*gate.Reply) { runtime.Goexit() })
	outer := gatefiber.AtEnd(ctx, func(*gate.Reply) { calls++ })
	stream(ctx)
	inner(gatefiber.Captured(ctx, 100))
	outer(gatefiber.Captured(ctx, 100))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = ctx.Response.Body()
	}()
	<-ended
	if calls != 1 {
		t.Errorf("the gate further out was left %d times, want once", calls)
	}
}

// TestNoCleanupWaitsForAGate: the gates of a request that fasthttp dropped may ask Redis,
// and all cleanups of the process share a few goroutines.
func TestNoCleanupWaitsForAGate(t *testing.T) {
	t.Parallel()
	var begun atomic.Int64
	finish := make(chan struct{})
	defer close(finish)
	goroutines := int64(runtime.GOMAXPROCS(0)) // Go uses fewer for cleanups
	for range goroutines {
		ctx := new(fasthttp.RequestCtx)
		left := gatefiber.AtEnd(ctx, func(*gate.Reply) {
			begun.Add(1)
			<-finish
		})
		stream(ctx)
		left(gatefiber.Captured(ctx, 100))
	}
	collected := func(holds func() bool) func() bool {
		return func() bool {
			runtime.GC()
			return holds()
		}
	}
	redistest.Await(t, time.Minute, "the gates to be left", collected(func() bool { return begun.Load() == goroutines }))
	var cleaned atomic.Bool
	runtime.AddCleanup(new([64]byte), func(c *atomic.Bool) { c.Store(true) }, &cleaned)
	redistest.Await(t, time.Minute, "another cleanup", collected(cleaned.Load))
}

func stream(c *fasthttp.RequestCtx) { c.SetBodyStream(strings.NewReader("body"), 4) }

type onlyReads struct{ io.Reader }

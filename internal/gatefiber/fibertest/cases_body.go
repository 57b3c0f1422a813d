package fibertest

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatetest"
	"github.com/neap-go/neap/internal/gatefake"
)

var streaming = Config{StreamRequestBody: true}

// bodyBrokenOff: a streamed body that ends early does not pass for a whole one.
func bodyBrokenOff(t *testing.T, d Driver) {
	address := d.Serve(t, streaming, gated(bodies(1<<20)))
	for name, raw := range map[string]string{
		"EndsEarly":       posting(200_000, strings.Repeat("x", 100_000)),
		"ChunksMalformed": chunkedHead + "\r\n5\r\nthese\r\nno chunk\r\n",
		"ChunksEndEarly":  chunkedHead + "\r\n5\r\nthese\r\n",
		"NoChunks":        chunkedHead + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := "200 0 " + gate.ErrBodyBroken.Error()
			if got := exchanged(t, address, raw); len(got) != 1 || got[0] != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// bodyReadByOthers: a streamed body that middleware has read counts as consumed.
func bodyReadByOthers(t *testing.T, d Driver) {
	address := d.Serve(t, streaming, gated(bodies(1<<20), func(x gatetest.Exchange, next func() error) error {
		if _, err := x.Body(); err != nil {
			t.Error(err)
		}
		return next()
	}))
	want := "200 0 " + gate.ErrBodyConsumed.Error()
	for name, raw := range map[string]string{
		"Length":   posting(4, "body"),
		"Chunked":  chunkedHead + "\r\n4\r\nbody\r\n0\r\n\r\n",
		"NoChunks": chunkedHead + "\r\n0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The client sends nothing more and stays connected: reading on would wait for it.
			if got := answered(t, address, raw); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// bodyBegunByOthers: a streamed body that middleware has read in part counts as
// consumed.
func bodyBegunByOthers(t *testing.T, d Driver) {
	address := d.Serve(t, streaming, gated(bodies(1<<20), d.before(func(rc *fasthttp.RequestCtx) {
		if _, err := io.ReadFull(rc.RequestBodyStream(), make([]byte, 4)); err != nil {
			t.Error(err)
		}
	})))
	want := "200 0 " + gate.ErrBodyConsumed.Error()
	if got := answered(t, address, chunkedHead+"\r\n6\r\na: b c\r\n0\r\n\r\n"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// bodyReadByNobody: a streamed body without a byte is whole, and not consumed.
func bodyReadByNobody(t *testing.T, d Driver) {
	address := d.Serve(t, streaming, gated(bodies(1<<20)))
	for _, raw := range []string{
		chunkedHead + "\r\n0\r\n\r\n",
		chunkedHead + "X-Zero: 0\r\n\r\n0\r\n\r\n",
	} {
		if got := answered(t, address, raw); got != "200 0 <nil>" {
			t.Errorf("%q: got %q, want \"200 0 <nil>\"", raw, got)
		}
	}
}

// bodyRefused: if a refused request's body was not read, it must not become the next
// request.
func bodyRefused(t *testing.T, d Driver) {
	address := d.Serve(t, streaming, gated(gatefake.Func(func(q gate.Request) gate.Pass { return respond(429, q.Path()) })))
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: example.com\r\n\r\n"
	ahead := strings.Repeat("x", 8<<10) // what fasthttp reads of a body by itself
	for name, raw := range map[string]string{
		"Length":  posting(100_000, ahead+smuggled),
		"Chunked": chunkedHead + "\r\n" + smuggled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := exchanged(t, address, raw); len(got) != 1 || got[0] != "429 /detail" {
				t.Errorf("got the responses %q, want one", got)
			}
		})
	}
}

// bodyRefusedBefore: with the HeaderReceived of the adapters' documentation the server
// refuses a body that is too long, and does not ask for it with a 100.
func bodyRefusedBefore(t *testing.T, d Driver) {
	const maxBody = 1000
	limited := func(h *fasthttp.RequestHeader) (c fasthttp.RequestConfig) {
		if h.ContentLength() > maxBody {
			h.Del("Expect")
			c.MaxRequestBodySize = maxBody
		}
		return c
	}
	for name, c := range map[string]struct {
		received func(*fasthttp.RequestHeader) fasthttp.RequestConfig
		length   int
		want     string
	}{
		"TooLong": {limited, maxBody + 1, "HTTP/1.1 413 "},
		"Fits":    {limited, maxBody, "HTTP/1.1 100 "},
		"Unset":   {nil, maxBody + 1, "HTTP/1.1 100 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, d.Serve(t, Config{HeaderReceived: c.received}, gated(bodies(maxBody))))
			fmt.Fprintf(conn, "POST /detail HTTP/1.1\r\nHost: example.com\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", c.length)
			first := make([]byte, len(c.want))
			if _, err := io.ReadFull(conn, first); err != nil || string(first) != c.want {
				t.Errorf("first came %q, %v, want %q", first, err, c.want)
			}
		})
	}
}

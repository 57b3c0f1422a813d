package fibertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatetest"
	"github.com/neap-go/neap/internal/gatefake"
)

// keySeesNoTrailer: a key of Fiber's own sees no trailer. It leaves the header to the
// handler as it was, and also the strings of it that middleware has kept.
func keySeesNoTrailer(t *testing.T, d Driver) {
	peeked := func(rc *fasthttp.RequestCtx) (all string) {
		for _, name := range []string{"X-A", "X-B", "X-Only", "X-Set"} {
			all += fmt.Sprintf("%s", rc.Request.Header.PeekAll(name))
		}
		return all
	}
	keyed, kept, before := "", "", ""
	key := d.Key(func(rc *fasthttp.RequestCtx) (string, error) { return peeked(rc) + " " + kept, nil })
	address := d.Serve(t, Config{}, gatetest.App{
		Around: []gatetest.Middleware{d.before(func(rc *fasthttp.RequestCtx) {
			kept = lent(rc.Request.Header.Peek("X-A"))
			rc.Request.Header.Set("X-Set", "middleware")
			before = peeked(rc) // fasthttp adds a line again for each read that ends inside the trailer
		})},
		Routes: []gatetest.Route{{
			Method: "POST", Pattern: "/detail",
			Gates: []gate.Gate{gatefake.Func(func(q gate.Request) gate.Pass {
				k, err := key(q)
				keyed = fmt.Sprint(k, " ", err)
				return gate.Pass{}
			})},
			Handler: func(x gatetest.Exchange) error { return x.Send(200, keyed+" | "+peeked(d.RequestCtx(x))+" "+kept) },
		}},
	})
	got := answered(t, address, chunkedHead+"X-A: 1\r\nX-B: 2\r\n\r\n1\r\na\r\n0\r\nX-A: 3\r\nX-Only: 4\r\n\r\n")
	if want := "200 [][2][][] 1 <nil> | " + before + " 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !strings.HasPrefix(before, "[1 3") || !strings.HasSuffix(before, "[middleware]") {
		t.Errorf("the request came with %q, want X-A with its trailer, and X-Set of middleware", before)
	}
}

// keyOfTheBody: a key of Fiber's own that reads the body sees no trailer, although
// fasthttp reads the trailer with the last chunk.
func keyOfTheBody(t *testing.T, d Driver) {
	for stream, want := range map[bool]string{false: "200 a [][] <nil>", true: "200 a [1][] <nil>"} {
		t.Run(fmt.Sprintf("Stream=%t", stream), func(t *testing.T) {
			t.Parallel()
			key := d.Key(func(rc *fasthttp.RequestCtx) (string, error) {
				r := &rc.Request
				return fmt.Sprintf("%s %s%s", r.Body(), r.Header.PeekAll("X-A"), r.Header.PeekAll("X-Only")), nil
			})
			address := d.Serve(t, Config{StreamRequestBody: stream}, gated(told(func(q gate.Request) string {
				k, err := key(q)
				return fmt.Sprint(k, " ", err)
			})))
			got := answered(t, address, chunkedHead+"X-A: 1\r\n\r\n1\r\na\r\n0\r\nX-A: 3\r\nX-Only: 4\r\n\r\n")
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// keyBehindAKeyOfTheBody: a key of Fiber's own leaves the handler the body that a gate
// outside has read.
func keyBehindAKeyOfTheBody(t *testing.T, d Driver) {
	for _, stream := range []bool{false, true} {
		native := d.Key(func(rc *fasthttp.RequestCtx) (string, error) {
			return string(rc.Request.Header.Peek("X-A")) + string(rc.Request.Body()), nil
		})
		seen := ""
		address := d.Serve(t, Config{StreamRequestBody: stream}, gatetest.App{Routes: []gatetest.Route{{
			Method: "POST", Pattern: "/detail",
			Gates: []gate.Gate{gatefake.Func(func(q gate.Request) gate.Pass {
				_, _ = q.Body(1 << 10)
				seen, _ = native(q)
				return gate.Pass{}
			})},
			Handler: func(x gatetest.Exchange) error { return x.Send(200, string(d.RequestCtx(x).Request.Body())) },
		}}})
		got := answered(t, address, chunkedHead+"X-A: 1\r\n\r\n4\r\nbody\r\n0\r\n\r\n")
		if got != "200 body" || seen != "1body" {
			t.Errorf("streamed %t: the key saw %q and the handler %q, want \"1body\" and \"200 body\"",
				stream, seen, got)
		}
	}
}

package gatefiber

import (
	"io"

	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
)

// AtEnd returns a function that calls leave when the response has ended. As a rule that
// is immediately. But a response goes on when the handlers have returned if its body is a
// stream, which fasthttp writes then, or if a handler takes the connection over. Then
// leave is called as [adapter.End] says, after c was used for other requests.
func AtEnd(c *fasthttp.RequestCtx, leave func(*gate.Reply)) func(*gate.Reply) {
	n, ok := c.UserValue(endsKey{}).(*ends)
	if !ok { // a handler may leave goroutines behind that read values, so this is not set later
		n = new(ends)
		c.SetUserValue(endsKey{}, n)
	}
	return func(reply *gate.Reply) {
		if reply == nil { // the handler may run on, and use c
			leave(nil)
			return
		}
		if e := n.of(c); e == nil || !e.Leave(leave, reply) {
			leave(reply)
		}
	}
}

// endsKey is the key of a request's ends, in its locals.
type endsKey struct{}

// ends knows the end for which the gates of a request wait. fasthttp closes all values of
// a request when it is done with the request.
type ends struct {
	last         *adapter.End
	ofConnection bool // last is the end of a connection that was taken over
}

// of returns the end of a response that goes on, or nil.
func (n *ends) of(c *fasthttp.RequestCtx) *adapter.End {
	if n.last != nil && !n.last.Reached() {
		return n.last // a gate further in waits for it
	}
	e := new(adapter.End)
	switch {
	case c.Hijacked():
		if c.ConnRequestNum() == 0 {
			return nil // c is of no server, which would close its values
		}
		adapter.Watch(n, e)
		n.ofConnection = true
	case !c.Response.IsBodyStream() || !setStream(&c.Response, ofStream(e, &c.Response)):
		return nil
	}
	n.last = e
	return e
}

func (n *ends) Close() error {
	if n.ofConnection {
		return n.last.Reach(false)
	}
	return nil
}

// ofStream returns a stream for the response that reads its present one.
func ofStream(e *adapter.End, response *fasthttp.Response) io.Reader {
	present := response.BodyStream()
	if is, limited := present.(*io.LimitedReader); limited { // fasthttp would take its length
		if n := int(is.N); n >= 0 && int64(n) == is.N && response.Header.ContentLength() < 0 {
			response.Header.SetContentLength(n)
		}
	}
	return e.Stream(present)
}

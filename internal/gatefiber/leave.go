package gatefiber

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
)

// AtEnd returns a function that calls leave when the response has ended. As a rule that
// is immediately. But a response goes on when the handlers have returned if its body is a
// stream, which fasthttp writes then, or if a handler takes the connection over.
//
// leave gets the same reply then, or nil if the response broke off because its stream
// could not be read. It may run on any goroutine, after c was used for other requests. If
// it panics, the panic is logged and ends the connection: nothing would recover it.
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
		if e := n.of(c); e == nil || !e.add(left{leave, reply}) {
			leave(reply)
		}
	}
}

// endsKey is the key of a request's ends, in its locals.
type endsKey struct{}

// ends knows the end for which the gates of a request wait. fasthttp closes all values of
// a request when it is done with the request.
type ends struct {
	last         *end
	ofConnection bool // last is the end of a connection that was taken over
}

// of returns the end of a response that goes on, or nil.
func (n *ends) of(c *fasthttp.RequestCtx) *end {
	if n.last != nil && !n.last.isReached() {
		return n.last // a gate further in waits for it
	}
	e := new(end)
	switch {
	case c.Hijacked():
		if c.ConnRequestNum() == 0 {
			return nil // c is of no server, which would close its values
		}
		watched(n, e)
		n.ofConnection = true
	case !c.Response.IsBodyStream() || !setStream(&c.Response, e.ofStream(&c.Response)):
		return nil
	}
	n.last = e
	return e
}

func (n *ends) Close() error {
	if n.ofConnection {
		return n.last.reach(false)
	}
	return nil
}

// end is the end of a response, and the gates that are left then.
type end struct {
	mu      sync.Mutex
	left    []left // inner gates first
	reached bool
}

type left struct {
	leave func(*gate.Reply)
	reply *gate.Reply
}

func (e *end) isReached() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reached
}

// add returns false if the end has been reached.
func (e *end) add(l left) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.reached {
		e.left = append(e.left, l)
	}
	return !e.reached
}

// errPanicked breaks a response off.
var errPanicked = errors.New("neap: a gate panicked when the response had ended")

// reach has the gates left, once. It returns errPanicked if one of them panics.
func (e *end) reach(broken bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reached = true
	return e.leave(broken)
}

// leave has the other gates left even if one ends the goroutine.
func (e *end) leave(broken bool) (err error) {
	if len(e.left) == 0 {
		return nil
	}
	l := e.left[0]
	e.left = e.left[1:]
	if broken {
		l.reply = nil
	}
	defer func() {
		if others := e.leave(broken); others != nil {
			err = others
		}
	}()
	if !l.returns() {
		return errPanicked
	}
	return nil
}

func (l left) returns() (returned bool) {
	defer func() {
		if !returned {
			logPanic(recover())
		}
	}()
	l.leave(l.reply)
	return true
}

// logPanic does not log the value, which may have a key.
func logPanic(value any) {
	defer func() { _ = recover() }() // a handler of the log may panic too
	slog.Error("neap: a gate panicked when a response had ended",
		"type", fmt.Sprintf("%T", value), "stack", string(debug.Stack()))
}

// watched returns this, by which fasthttp tells of the end: it reads or closes it. But
// fasthttp drops a request whose handler was too late for TimeoutError, and one that takes
// over a connection that turns out to be broken. Then the garbage collector tells of the
// end. All cleanups of the process share a few goroutines, so a gate, which may ask Redis,
// is left on another.
func watched[T any](this *T, e *end) *T {
	runtime.AddCleanup(this, func(e *end) { go func() { _ = e.reach(true) }() }, e)
	return this
}

package nethttp

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/outgoing"
)

// TransportOptions are the options of [NewTransport]. Their functions must be safe for
// concurrent use. Their panics propagate to the caller of RoundTrip, and those of Settle to
// the caller that reads or closes the body.
type TransportOptions struct {
	// Wait is how long a request may wait for its permits, as limit.Limiter.WaitFor says.
	// With 0 it does not wait. The request's context also ends the wait.
	Wait time.Duration
	// Cost returns how many permits a request takes. With nil each request takes 1.
	Cost func(*http.Request) int64
	// Settle returns what a request cost in the end. What it took at first was an
	// estimate. Settle is called once for each request, when the body of its response has
	// ended or is closed, with that response, whose Trailer is complete if the body was
	// read to its end. It is called with nil if there was no response. A number below 0
	// keeps the estimate. Settle costs another round trip to Redis.
	Settle func(*http.Response) int64
	// Concurrency also bounds how many requests of a subject are in flight at once. A
	// request is in flight until the body of its response has ended or is closed. If there
	// is no room, the request is denied without a wait, and its permits are given back. Nil
	// bounds nothing.
	Concurrency *inflight.Limiter
	// Told returns for how long the partner wants no requests of the subject, as its
	// answer says; 0 means that it does not say. Nil is [Told]; see also [ToldAlsoBy] and
	// [ToldByReset].
	Told func(*http.Response) time.Duration
	// MaxHold is the longest time for which an answer can put the subject on hold: a second
	// to 30 days. 0 means an hour.
	MaxHold time.Duration
	// OnError is told of errors, which are for operators: they may name keys. With nil
	// they are dropped. OnError is told of each decision that was made without Redis, of
	// each hold that Redis did not confirm, and of a settlement that was given up: minutes
	// later, on a goroutine of its own where a panic is logged, and with the request as it is
	// then. It is not told of what RoundTrip returns.
	OnError func(*http.Request, error)
}

// NewTransport returns a transport that sends requests to somebody else's API within a
// limit that holds for all your processes together. base sends them; nil is
// http.DefaultTransport. key returns the subject that a request counts for; nil counts for
// the host. The limiter needs limit.Options.Holds.
//
//	client := &http.Client{Transport: nethttp.NewTransport(nil, limiter, nil, nil)}
//
// A request that the limit denies is not sent. Its error, in the *url.Error of http.Client,
// is a *limit.LimitedError, which says when to try again. The other errors before a request
// is sent are that of key, and those of limit.Limiter.TakeN and of Concurrency.
//
// What the partner says counts for all processes: if an answer says that it wants no
// requests for a while, none is sent until then, as limit.Limiter.Hold says. [Told] says which answers these are. If a
// 429 does not say for how long, the subject is on hold for a second. After the next such
// answer to this process that is twice as long, and so on, until an answer is no 429. The
// answer itself reaches the caller as it is.
//
// The transport sends nothing again. Put a client that does so around it, such as
// hashicorp/go-retryablehttp: each attempt is then a request. http.Client follows
// redirects by further requests. Each counts for its own host.
//
// A request costs the round trips to Redis of limit.Limiter.TakeN and of Concurrency, and
// one more if its answer puts the subject on hold. Package core/outgoing says what margin to
// leave, because a partner counts when requests arrive.
//
// NewTransport panics on a nil limiter, on one without Holds, on Settle with a limiter that
// cannot settle, and on options out of range.
// Nil options are the defaults; options are copied. The transport is safe for concurrent
// use. CloseIdleConnections closes those of base.
func NewTransport(base http.RoundTripper, limiter *limit.Limiter, key func(*http.Request) (string, error), opts *TransportOptions) http.RoundTripper {
	t := &transport{base: base, key: key}
	if opts != nil {
		t.opts = *opts
	}
	if t.base == nil {
		t.base = http.DefaultTransport
	}
	if t.key == nil {
		t.key = host
	}
	if t.opts.Told == nil {
		t.opts.Told = Told
	}
	calls, err := outgoing.New(limiter, &outgoing.Options{Wait: t.opts.Wait, Concurrency: t.opts.Concurrency, Settles: t.opts.Settle != nil, MaxHold: t.opts.MaxHold})
	if err != nil {
		panic("nethttp.NewTransport: " + err.Error())
	}
	t.calls = calls
	return t
}

type transport struct {
	base  http.RoundTripper
	calls *outgoing.Calls
	key   func(*http.Request) (string, error)
	opts  TransportOptions
}

// RoundTrip sends a request if the limit admits it.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var call *outgoing.Call
	defer func() {
		if call == nil && r.Body != nil { // base does not close it, also if a hook has panicked
			_ = r.Body.Close()
		}
	}()
	call, err := t.begin(r)
	if err != nil {
		return nil, err
	}
	ended := false
	defer func() {
		if !ended { // there is no response, also if base panics
			t.end(r, call, nil)
		}
	}()
	a, err := t.base.RoundTrip(r)
	if err != nil || a == nil {
		return a, err
	}
	ended = true
	var hasEnded atomic.Bool // no sync.Once: Settle may close the body
	end := func() {
		if !hasEnded.Swap(true) {
			t.end(r, call, a)
		}
	}
	panics := true
	defer func() {
		if panics { // Told does
			end()
			_ = a.Body.Close()
		}
	}()
	call.Answered(r.Context(), t.opts.Told(a), a.StatusCode == http.StatusTooManyRequests)
	panics = false
	a.Body = ending(a.Body, end)
	return a, nil
}

func (t *transport) begin(r *http.Request) (*outgoing.Call, error) {
	subject, err := t.key(r)
	if err != nil {
		return nil, err
	}
	cost := int64(1)
	if t.opts.Cost != nil {
		cost = t.opts.Cost(r)
	}
	return t.calls.Begin(r.Context(), subject, cost, func(err error) {
		if t.opts.OnError != nil {
			t.opts.OnError(r, err)
		}
	})
}

// end ends a request; a is its response, or nil if there is none.
func (t *transport) end(r *http.Request, call *outgoing.Call, a *http.Response) {
	used := int64(-1)
	defer func() { call.End(r.Context(), used) }() // also if Settle panics
	if t.opts.Settle != nil {
		used = t.opts.Settle(a)
	}
}

// CloseIdleConnections is for http.Client.CloseIdleConnections.
func (t *transport) CloseIdleConnections() {
	if base, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

var errNoURL = errors.New("nethttp: the request has no URL")

// ports are those that a URL of the scheme may leave out.
var ports = map[string]string{"http": "80", "https": "443"}

// host is the subject of a request without a key: the host, and the port unless it is that
// of the scheme. All spellings that net/http connects to one server are one subject, but for
// a name beyond ASCII and its Punycode.
func host(r *http.Request) (string, error) {
	if r.URL == nil {
		return "", errNoURL
	}
	name := strings.TrimSuffix(strings.ToLower(r.URL.Hostname()), ".")
	if ip, err := netip.ParseAddr(name); err == nil {
		name = ip.Unmap().String()
	}
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	if port := strings.TrimLeft(r.URL.Port(), "0"); port != "" && port != ports[r.URL.Scheme] {
		name += ":" + port
	}
	return name, nil
}

// halfCloser is what the body of a 101 is, so that a proxy can pass the end of one direction on.
type halfCloser interface {
	io.Writer
	CloseWrite() error
}

// ending returns a body that calls end when it has ended or is closed. http.NoBody has ended.
// A body that can be written stays one.
func ending(body io.ReadCloser, end func()) io.ReadCloser {
	if body == nil || body == http.NoBody {
		end()
		return body
	}
	e := &endingBody{body, end}
	switch w := body.(type) {
	case halfCloser:
		return struct {
			*endingBody
			halfCloser
		}{e, w}
	case io.Writer:
		return struct {
			*endingBody
			io.Writer
		}{e, w}
	}
	return e
}

type endingBody struct {
	io.ReadCloser

	end func()
}

func (b *endingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

func (b *endingBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

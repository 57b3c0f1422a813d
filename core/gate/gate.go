package gate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"
)

// Request is what a gate may ask about an HTTP request, whatever framework carries it.
//
// A Request is valid until Enter has returned. After that the handlers behind the gate
// may change it, and the framework may use it for another request. A gate keeps a copy of
// what its Leave needs. It does not change the slices that the methods return.
type Request interface {
	// Context is the request's context as earlier middleware left it. A gate may keep it
	// after the request is over. Some contexts read an object that the framework then
	// uses for another request, such as *gin.Context and Fiber's *fasthttp.RequestCtx.
	// These have no values once the request is over.
	Context() context.Context
	Method() string
	// Host is the host that the client named; X-Forwarded-Host is never believed.
	Host() string
	// Path is the path as it was sent: escaped, and before any StripPrefix or rewriting.
	Path() string
	// RawQuery is the query as it was sent, without the question mark.
	RawQuery() string
	// Route is the pattern that matched, written in the same way for every framework:
	// "/users/{id}", "/files/{...}". It is empty if the framework does not know the route
	// yet where the gate is mounted.
	Route() string
	// Param is a route parameter as the framework hands it to the handler, which may be
	// decoded or not. Param("...") is what the wildcard of "/files/{...}" matched,
	// without the slash before it. Param is empty if Route is empty.
	Param(name string) string
	// Header returns every line of a field, in order. Neither Header nor Headers returns
	// fields of a trailer, because the client writes the trailer after the proxies have
	// checked the header. If a framework mixes the two, its Request also has the method
	// Unsure(name string) bool. Unsure reports whether the framework has lines of a field
	// that Header leaves out. Keys refuse such a field with a 400.
	Header(name string) []string
	// Headers yields every line of every field, with names in canonical form.
	Headers() iter.Seq2[string, string]
	// Value is what earlier middleware stored under key.
	Value(key any) any
	// RemoteAddr is the peer of the socket, or what earlier middleware replaced it with.
	// The port is 0 if there is none. RemoteAddr is the zero AddrPort if the peer has no
	// IP address, such as one on a unix socket.
	RemoteAddr() netip.AddrPort
	// Body returns the whole body, of at most max bytes, and leaves it readable for the
	// handler. It fails with [ErrBodyTooLarge], [ErrBodyBroken] or [ErrBodyConsumed]. A
	// second call fails in the same way; only a larger max may then succeed.
	//
	// If the framework may find another form in a body than the bytes and the Content-Type
	// have, its Request also has the method OddForm() bool, which reports that. [ByForm]
	// refuses such a form with a 400.
	Body(max int64) ([]byte, error)
}

// These are the errors of [Request.Body]. ErrBodyConsumed wraps [ErrWiring].
var (
	ErrBodyTooLarge = errors.New("gate: the body is larger than the limit")
	ErrBodyBroken   = errors.New("gate: the body ended early or could not be read")
	ErrBodyConsumed = fmt.Errorf("%w: the body was already read by middleware outside the gate", ErrWiring)
)

// Gate decides whether a request may run. The adapter calls Enter once for each request,
// and concurrently for different requests.
type Gate interface {
	Enter(Request) Pass
}

// Pass is what a gate decided. The zero Pass runs the handler and does nothing else; the
// adapter does not even wrap the response writer.
type Pass struct {
	// Header is set on the response before the handler runs, or before Reply is sent.
	Header []Field
	// Reply, if it is set, is sent instead of running the handler. All fields below but
	// Denial are then ignored.
	Reply *Reply
	// Denial says why the request was refused, for adapters that do not speak HTTP. The
	// gates of this package set it with each Reply that refuses. Its Request is nil.
	Denial *Denial
	// Context, if it is set, is the handler's context. The adapter restores the old one
	// before it returns.
	Context context.Context
	// Capture is how many bytes of the response body Leave gets. With 0, Leave gets the
	// status and the header only.
	Capture int64
	// Leave, if it is set, is called exactly once, after the handler. On Fiber and Hertz the
	// handler may return before its answer has ended: the server then writes a body that is
	// a stream, or runs the function of Hijack. Leave is called after that.
	//
	// Leave gets what the client sees, which includes answers that the framework rendered
	// from an error. It gets nil after a panic, if the answer was left to middleware
	// outside the gate, and if a stream that the server writes cannot be read to its end.
	Leave func(*Reply)
}

// Field is one header line. With Add it stands beside earlier lines of the same name.
// Without Add it replaces them.
type Field struct {
	Name, Value string
	Add         bool
}

// Key names the subject that a decision is for. It must be safe for concurrent use.
//
// It returns an error made by [Refuse] for a request that has no usable key. Any other
// error is answered with a 500. Its text goes to the gate's OnError hook and never to the
// client. If a Key fails with [ErrMissing], [FirstOf] asks its next key.
//
// A Key must not return an empty string without an error: the answer would be a 500. A
// key of more than 1 KiB is refused with a 400.
//
// The keys of this package tag what they return: with their kind, or ByValue with its
// name. So no value of one key can pass for a value of another kind or name. A Key of your
// own can return the same text, so put it into [Tag].
type Key func(Request) (string, error)

package gate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"
)

// Request is what a gate may ask of an HTTP request, whatever framework
// carries it. A Request is valid until Enter has returned: the handlers behind
// the gate may change it, or the framework use it again. What Leave needs, the
// gate keeps; the strings and slices that the methods return are its own.
type Request interface {
	// Context is the request's context as earlier middleware left it. It may be
	// kept when the request is over. Where it reads what the framework then uses
	// for another request, such as *gin.Context and Fiber's *fasthttp.RequestCtx,
	// it has no values from then on.
	Context() context.Context
	Method() string
	// Host is the host as the client named it; X-Forwarded-Host is never believed.
	Host() string
	// Path is the path on the wire: escaped, before any StripPrefix or rewriting.
	Path() string
	// RawQuery is the query on the wire, without the question mark.
	RawQuery() string
	// Route is the pattern that matched, written alike for every framework:
	// "/users/{id}", "/files/{...}". It is empty where the framework does not
	// know the route yet at the place the gate is mounted.
	Route() string
	// Param is a route parameter as the framework hands it to the handler, decoded
	// or not; Param("...") is what the wildcard of "/files/{...}" matched, without
	// the slash before it. It is empty where Route is.
	Param(name string) string
	// Header returns every line of a field, in order. Neither it nor Headers has a
	// field of a trailer, which the client writes behind the backs of the proxies.
	// If a framework mixes the two, its Request also has Unsure(name string) bool. It
	// reports whether the framework has lines of a field that Header leaves out. Keys
	// refuse such a field with a 400.
	Header(name string) []string
	// Headers yields every line of every field, names in canonical form.
	Headers() iter.Seq2[string, string]
	// Value is what earlier middleware stored under key.
	Value(key any) any
	// RemoteAddr is the peer of the socket, or what earlier middleware replaced
	// it with, whose port is 0 if it has none. It is the zero AddrPort for what is
	// no IP address, such as a unix socket.
	RemoteAddr() netip.AddrPort
	// Body returns the whole body and leaves it readable for the handler.
	// It fails with [ErrBodyTooLarge], [ErrBodyBroken] or [ErrBodyConsumed],
	// and fails alike when asked again; only a larger max may then do.
	Body(max int64) ([]byte, error)
}

// What [Request.Body] fails with. ErrBodyConsumed is an [ErrWiring].
var (
	ErrBodyTooLarge = errors.New("gate: the body is larger than the limit")
	ErrBodyBroken   = errors.New("gate: the body ended early or could not be read")
	ErrBodyConsumed = fmt.Errorf("%w: the body was already read by middleware outside the gate", ErrWiring)
)

// Gate decides whether a request may run. Enter is called once a request,
// concurrently for different requests.
type Gate interface {
	Enter(Request) Pass
}

// Pass is what a gate decided. The zero Pass runs the handler and nothing
// else: the response writer is not even wrapped.
type Pass struct {
	// Header is set on the response before the handler runs, or before Reply
	// is sent.
	Header []Field
	// Reply, when set, is sent instead of running the handler; the fields
	// below are then ignored.
	Reply *Reply
	// Context, when set, is the handler's context. The adapter restores the
	// old one before it returns.
	Context context.Context
	// Capture is how many body bytes Leave wants to see; 0 is status and
	// header only.
	Capture int64
	// Leave, when set, is called exactly once, after the handler: with what
	// the client sees, answers that the framework rendered from an error
	// included; with nil after a panic, or when the answer was left to
	// middleware outside the gate.
	Leave func(*Reply)
}

// Field is one header line. With Add it stands beside the lines of the same
// name that are there already, otherwise it replaces them.
type Field struct {
	Name, Value string
	Add         bool
}

// Key names whom a decision is for. It returns an error made by [Refuse] for
// a request that cannot be keyed; any other error is answered with a 500 and
// its text goes to the gate's OnError hook, never to the client.
//
// A Key that fails with [ErrMissing] lets [FirstOf] ask its next one. It must
// not return an empty string without an error, which is answered with a 500; a
// key of more than 1 KiB is refused with a 400. Keys of this package tag what
// they return with their kind, so that no value of one kind can pass for a
// value of another; [Tag] does so for a Key of one's own.
type Key func(Request) (string, error)

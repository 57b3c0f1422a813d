package gatetest

import (
	"context"
	"iter"
	"net"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/script"
)

// Driver is an adapter under test. Serve, Key, Native and Redis are required. The fields
// that are not functions say what the framework can do. Their zero value stands for a
// framework that cannot.
type Driver struct {
	// Serve mounts app with the adapter's Middleware and Handler, listens on a loopback
	// port until the test's cleanup, and returns its host:port. If Middleware or Handler
	// panics, Serve lets the panic pass, before it listens.
	//
	// Outside all of app, Serve recovers panics. If the response has not begun, it then
	// answers with a 500 whose body is [Recovered].
	Serve func(t testing.TB, app App) (address string)

	// Key is the adapter's Key, made from a function that reads the first line of a
	// request header from the framework's own request. It fails with [ErrNoHeader] if
	// there is no such line.
	Key func(header string) gate.Key
	// Native finds the framework's own request with the adapter's Context, and reads the
	// first line of a header from it. It returns false if Context does.
	Native func(q gate.Request, header string) (string, bool)

	// Redis starts an empty Redis, such as miniredis, that ends with the test, and
	// returns a client for it. Locks need it: they have no form in process.
	Redis func(t testing.TB) script.Client

	// Pooled is the context that the framework hands out and uses again for other
	// requests, if it has one. It finds what SetValue stored.
	Pooled func(x Exchange) context.Context

	// Errors says what becomes of an error that a handler returns.
	Errors Errors
	// BodyFirst says that the server has read a request's body before any handler runs.
	// Then a broken body reaches no gate, and middleware cannot use one up.
	BodyFirst bool
	// RefusedTrailers are fields for which the server refuses a request if its trailer
	// declares or has one, because no trailer may have it (RFC 9110 section 6.5.1).
	RefusedTrailers []string
	// Hijack says that Exchange.Hijack works.
	Hijack bool
	// HijackAnswers says that the server sends the response of a handler before it hands
	// the connection over. Leave gets its status and header then.
	HijackAnswers bool
	// Disconnect says that a request's context ends when the client is gone.
	Disconnect bool
}

// Errors is what a framework does with an error that a handler returns.
type Errors int

const (
	// NoErrors: handlers return none.
	NoErrors Errors = iota
	// ErrorsInside: the application's error handler can run where the gate is, so that
	// Leave sees what it renders.
	ErrorsInside
	// ErrorsOutside: middleware outside the gate renders the error. Leave gets nil if
	// nothing was written.
	ErrorsOutside
)

// Recovered is the body of the 500 with which a Driver answers for a panic.
const Recovered = "recovered"

// ErrNoHeader is the error of a Driver's Key.
var ErrNoHeader = gate.Refuse(400, "no such header")

// App is an application to serve.
type App struct {
	// Around is middleware outside every gate, outermost first.
	Around []Middleware
	// Gates stand around the whole application, outermost first.
	Gates  []gate.Gate
	Routes []Route
	// OnError renders the error that a handler returned. The Driver makes it the
	// application's error handler, unless Errors is NoErrors.
	OnError func(x Exchange, err error)
}

// Route is one endpoint of an App, written as a gate sees it: "/users/{id}",
// "/files/{...}". A route for GET also answers HEAD. If the framework does not do that
// itself, the Driver registers both.
type Route struct {
	Method, Pattern string
	// Around is middleware of the route outside its gates, outermost first.
	Around []Middleware
	// Gates are the route's own, outermost first, each mounted with Middleware.
	Gates   []gate.Gate
	Handler Handler
	// Endpoint, if it is set, is mounted with the adapter's Handler instead.
	Endpoint gate.Endpoint
}

// Handler answers a request. It returns an error only if Driver.Errors allows it.
type Handler func(x Exchange) error

// Middleware runs next, or does not, and returns its error.
type Middleware func(x Exchange, next func() error) error

// Exchange is a request and its response. It works with the framework's own means and
// none of the adapter's. To begin with a few methods, embed the interface in your type:
// the subtests that call another method fail and name it.
type Exchange interface {
	Context() context.Context
	SetContext(ctx context.Context)
	Param(name string) string
	// Query is the first value of a parameter of the query, decoded.
	Query(name string) string
	// Value and SetValue are the framework's store for middleware.
	Value(key string) any
	SetValue(key string, value any)
	// SetPeer replaces the peer's address, as middleware such as chi's RealIP
	// does.
	SetPeer(address string)
	// Rewrite changes the path, as middleware such as StripPrefix does.
	Rewrite(path string)
	// Body reads the whole body, as a handler would.
	Body() ([]byte, error)
	ContentLength() int64

	// SetRequestHeader and DelRequestHeader change the header of the request, as
	// middleware does that adds the identity of the caller.
	SetRequestHeader(name, value string)
	DelRequestHeader(name string)

	SetHeader(name, value string)
	AddHeader(name, value string)
	// Send writes the status and the body. It adds no Content-Type if the framework can
	// be kept from adding one.
	Send(status int, body string) error
	// Stream sends and flushes each chunk when it is yielded. It may run after the
	// handler has returned.
	Stream(status int, chunks iter.Seq[string]) error
	// Hijack takes the connection over. It may run after the handler has
	// returned. The Driver closes the connection.
	Hijack(talk func(net.Conn)) error
}

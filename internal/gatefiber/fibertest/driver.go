package fibertest

import (
	"io"
	"net/http"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatetest"
)

// Driver is an adapter of Fiber under test. [Run] needs all of its functions.
type Driver struct {
	// Serve is that of a [gatetest.Driver], with an application of this config. What
	// a route's pattern has besides {...} and the {name}s of gatetest is Fiber's own
	// syntax, and stays as it is.
	Serve func(t testing.TB, config Config, app gatetest.App) (address string)

	// RequestCtx returns the fasthttp.RequestCtx of x.
	RequestCtx func(x gatetest.Exchange) *fasthttp.RequestCtx
	// Again has the whole application of x serve its RequestCtx, as a handler does
	// for the parts of a batch.
	Again func(x gatetest.Exchange)
	// Hostname is the host as Fiber tells it, which may believe X-Forwarded-Host.
	Hostname func(x gatetest.Exchange) string
	// Params are the names that Fiber has for the parameters of the route.
	Params func(x gatetest.Exchange) []string

	// Key is the adapter's Key over a function of the RequestCtx.
	Key func(f func(*fasthttp.RequestCtx) (string, error)) gate.Key
	// DropTrailers is the adapter's.
	DropTrailers gatetest.Middleware

	// Streams are the ways of a version of Fiber to answer with a stream of length bytes.
	Streams map[string]func(x gatetest.Exchange, stream io.Reader, length int) error
	// Files are its ways to answer with a file.
	Files map[string]func(x gatetest.Exchange, path string) error
	// Test serves one request as Fiber's own Test does.
	Test func(t testing.TB, app gatetest.App, r *http.Request) *http.Response
}

// Config says how an application is made. The fields of the first group are those
// of fiber.Config, with the same zero values.
type Config struct {
	StreamRequestBody, DisableHeaderNormalizing, ReduceMemoryUsage, DisablePreParseMultipartForm, UnescapePath bool

	BodyLimit int

	// TrustLoopback has Fiber believe X-Forwarded-Host of a peer on loopback.
	TrustLoopback bool
	// ErrorHandler is the application's in the place of App.OnError, unless nil.
	ErrorHandler func(error) error
	// HeaderReceived is that of fasthttp's server.
	HeaderReceived func(*fasthttp.RequestHeader) fasthttp.RequestConfig
}

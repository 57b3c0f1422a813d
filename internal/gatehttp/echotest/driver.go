// Package echotest has the tests of the adapters for Echo, which are the same for each of
// its versions: the contract of all adapters, and what only Echo can get wrong. It imports
// no Echo.
package echotest

import (
	"mime/multipart"
	"net/http"
	"testing"

	"github.com/neap-go/neap/core/gate"
)

// Context is what the contexts of all versions have. Besides, all types here are those of
// Echo, with its names.
type Context interface {
	Request() *http.Request
	SetRequest(r *http.Request)
	Param(name string) string
	QueryParam(name string) string
	Get(key string) any
	Set(key string, value any)
	String(status int, body string) error
	MultipartForm() (*multipart.Form, error)
}

// Handler is a HandlerFunc.
type Handler[C Context] = func(C) error

// Middleware is a MiddlewareFunc.
type Middleware[C Context] = func(next Handler[C]) Handler[C]

// App is an Echo.
type App[C Context] interface {
	http.Handler
	Pre(m Middleware[C])
	Use(m Middleware[C])
	Add(method, path string, h Handler[C], m ...Middleware[C])
	// AddToGroup adds a route to a new group with that middleware.
	AddToGroup(prefix string, of Middleware[C], method, path string, h Handler[C])
	// OnError sets the HTTPErrorHandler.
	OnError(f func(C, error))
}

// Driver is a version of Echo with its adapter.
type Driver[C Context] struct {
	New func() App[C] // it logs nothing

	Middleware func(g gate.Gate) Middleware[C]
	Handler    func(e gate.Endpoint) Handler[C]
	Key        func(f func(C) (string, error)) gate.Key
	Context    func(r gate.Request) (C, bool)

	Response  func(c C) http.ResponseWriter
	Committed func(c C) bool
	// Writer returns the innermost writer of the response, which the adapter may wrap.
	Writer func(c C) http.ResponseWriter
	// Wrap wraps the response as middleware does, and returns what undoes it.
	Wrap func(c C, in func(http.ResponseWriter) http.ResponseWriter) (undo func())
}

// Run runs all tests.
func Run[C Context](t *testing.T, d Driver[C]) {
	t.Helper()
	for name, test := range map[string]func(*testing.T){
		"Contract":                    d.contract,
		"ErrorIsStillReturned":        d.errorIsStillReturned,
		"ErrorLeftOutside":            d.errorLeftOutside,
		"MultipartFormReachesServer":  d.multipartFormReachesServer,
		"Patterns":                    d.patterns,
		"ResponseIsSealed":            d.responseIsSealed,
		"SealDoesNotReachOutside":     d.sealDoesNotReachOutside,
		"UnknownPathIsRenderedInside": d.unknownPathIsRenderedInside,
		"ValueOfTheContextToo":        d.valueOfTheContextToo,
		"WhereTheRouteIsKnown":        d.whereTheRouteIsKnown,
		"WriterIsWrappedForLeave":     d.writerIsWrappedForLeave,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

package neaptest

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
)

// Send sends a request to an instance of your application and returns its response. [Handler] makes one of a
// handler of net/http, Gin or Echo. With Fiber v2 and v3 it is
//
//	func(r *http.Request) (*http.Response, error) { return app.Test(r, -1) }
//	func(r *http.Request) (*http.Response, error) { return app.Test(r, fiber.TestConfig{}) }
//
// Without the second argument Fiber waits a second for the answer, and no longer.
// An assert calls it from several goroutines.
type Send func(*http.Request) (*http.Response, error)

// Handler returns a Send that calls a handler, without a socket. Requests may be those of
// httptest.NewRequest or of http.NewRequest. If the handler panics, the Send returns an error with the stack.
func Handler(h http.Handler) Send {
	return func(r *http.Request) (response *http.Response, err error) {
		defer func() {
			if p := recover(); p != nil {
				response, err = nil, fmt.Errorf("the handler panicked: %v\n%s", p, debug.Stack())
			}
		}()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, served(r))
		response = w.Result()
		// A field without a line is not sent. neap marks a refusal by one.
		maps.DeleteFunc(response.Header, func(_ string, lines []string) bool { return len(lines) == 0 })
		return response, nil
	}
}

// served returns a copy of the request, with what a server fills in.
func served(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	r.Host = cmp.Or(r.Host, r.URL.Host)
	r.RequestURI = cmp.Or(r.RequestURI, r.URL.RequestURI())
	r.RemoteAddr = cmp.Or(r.RemoteAddr, "192.0.2.1:1234") // as httptest has it
	if r.Body == nil {
		r.Body = http.NoBody
	}
	return r
}

// answer is what an assert looks at.
type answer struct {
	status     int
	body       string
	retryAfter string
	err        error
}

// ask sends a request.
func (s Send) ask(r *http.Request) answer {
	response, err := s(r)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{status: response.StatusCode, body: string(body), retryAfter: response.Header.Get("Retry-After"), err: err}
}

// String is how the failure of a test shows the answer.
func (a answer) String() string {
	if a.err != nil {
		return fmt.Sprintf("no answer (%v)", a.err)
	}
	const most = 100
	text := fmt.Sprintf("%d %.*q", a.status, most, a.body)
	if len(a.body) > most {
		text += "…"
	}
	return text
}

// same reports whether two answers are one and the same result.
func (a answer) same(b answer) bool {
	return a.err == nil && b.err == nil && a.status == b.status && a.body == b.body
}

// again reports whether the answer is a refusal that tells the caller to come back.
func (a answer) again() bool {
	switch a.status {
	case http.StatusServiceUnavailable: // what callback answers a provider, which sends again by itself
		return a.err == nil
	case http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return a.err == nil && a.retryAfter != ""
	}
	return false
}

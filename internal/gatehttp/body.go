package gatehttp

import (
	"net/http"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
)

// Body reads the whole body and leaves it readable for the handler, as
// [adapter.Body.Bytes] does. It keeps the bytes in the request's own Body, so that a
// second gate finds them, too.
func (q Request) Body(max int64) ([]byte, error) {
	r := q.HTTP
	b, ok := r.Body.(*adapter.Body)
	switch {
	case ok:
	case r.Body == nil, r.Body == http.NoBody:
		if r.ContentLength > 0 {
			return nil, gate.ErrBodyConsumed
		}
		return nil, nil
	case r.ContentLength < 0 && drained(r.Body):
		return nil, gate.ErrBodyConsumed
	case r.ContentLength > max:
		// The Body is not replaced here. With a Body of another type net/http would wait for
		// the body before it sends the refusal, even if the client waits for "100 Continue".
		return nil, gate.ErrBodyTooLarge
	default:
		b = adapter.NewBody(r.Body, r.ContentLength, r.Header.Get("Content-Encoding") != "")
		r.Body = b
	}
	return b.Bytes(max)
}

package hertzlimit

import (
	"bytes"
	"io"
	"reflect"

	"github.com/cloudwego/hertz/pkg/protocol"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
)

// Body returns the bytes as they were sent.
func (q *request) Body(max int64) ([]byte, error) {
	r := &q.c.Request
	if r.IsBodyStream() {
		return q.streamed(max)
	}
	length, body := int64(r.Header.ContentLength()), r.BodyBytes()
	switch {
	case int64(len(body)) > max:
		return nil, gate.ErrBodyTooLarge
	case len(body) > 0, length <= 0, len(r.Header.PeekContentEncoding()) > 0:
		return bytes.Clone(body), nil
	case length > max:
		return nil, gate.ErrBodyTooLarge
	case !r.HasMultipartForm():
		return nil, gate.ErrBodyConsumed
	}
	form, err := r.MultipartForm() // parses nothing: it was parsed before any handler ran
	if err != nil {
		return nil, gate.ErrBodyBroken
	}
	return adapter.Form(form, string(r.Header.MultipartFormBoundary()), string(r.Header.ContentType()), max)
}

// OddForm reports whether a handler may find another form in the body than its bytes have.
// Hertz undoes a Content-Encoding, and reads the boundary in its own way.
func (q *request) OddForm() bool {
	h := &q.c.Request.Header
	return len(h.PeekContentEncoding()) > 0 || adapter.OddBoundary(string(h.ContentType()), string(h.MultipartFormBoundary()))
}

// streamed reads a body that Hertz has not read yet, as under WithStreamBody. It puts a
// stream in its place that begins from the start.
func (q *request) streamed(max int64) ([]byte, error) {
	r := &q.c.Request
	if s, ok := r.BodyStream().(*again); ok {
		return s.Bytes(max)
	}
	length, native := int64(r.Header.ContentLength()), r.BodyStream()
	switch {
	case begun(native):
		return nil, gate.ErrBodyConsumed
	case length > max:
		return nil, gate.ErrBodyTooLarge
	}
	src := &source{Reader: native}
	if length >= 0 {
		src.Reader = io.LimitReader(native, length) // Hertz would read on, into the next request
	}
	encoded := len(r.Header.PeekContentEncoding()) > 0
	s := &again{adapter.NewBody(io.NopCloser(src), length, encoded), src, native}
	body, err := s.Bytes(max)
	setStream(r, s)
	q.own = s
	return body, err
}

// again is the stream that begins from the start.
type again struct {
	*adapter.Body
	src    *source
	native io.Reader
}

// source notes whether a stream was read in part.
type source struct {
	io.Reader
	begun, ended bool
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.begun, s.ended = true, s.ended || err == io.EOF
	return n, err
}

// giveBack puts the server's own stream in its place again. When the response was sent,
// the server reads what is left of that stream. It would take what is left behind another
// for the next request. In the middle of a chunk it would take the bytes of a client for
// the size of the next chunk, so then the connection ends.
func (q *request) giveBack() {
	s, ok := q.c.Request.BodyStream().(*again)
	if !ok || s != q.own {
		return
	}
	setStream(&q.c.Request, s.native)
	if q.c.Request.Header.ContentLength() < 0 && s.src.begun && !s.src.ended {
		q.c.Response.SetConnectionClose()
	}
}

// setStream replaces the stream of a request. SetBodyStream of Hertz would empty the
// buffer from which the server's own stream reads.
func setStream(r *protocol.Request, stream io.Reader) {
	r.ConstructBodyStream(r.BodyBuffer(), stream)
}

// begun reports whether others have read a part of a stream. Only private fields of Hertz
// tell that. If a version lacks them, a chunked body that others have read passes for an
// empty one.
func begun(stream io.Reader) bool {
	s := reflect.Indirect(reflect.ValueOf(stream))
	if s.Kind() != reflect.Struct {
		return false
	}
	for _, name := range []string{"offset", "chunkLeft", "chunkEOF"} {
		if field := s.FieldByName(name); field.IsValid() && !field.IsZero() {
			return true
		}
	}
	return false
}

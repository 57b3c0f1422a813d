package gatefiber

import (
	"bytes"
	"io"

	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
)

// Body returns the bytes as they were sent. It does not use Fiber's own Body, which
// undoes the Content-Encoding.
func (q Request) Body(max int64) ([]byte, error) {
	if q.Ctx.Request.IsBodyStream() {
		return q.streamed(max)
	}
	header := &q.Ctx.Request.Header
	if len(header.MultipartFormBoundary()) > 0 && len(header.Peek(fasthttp.HeaderContentEncoding)) == 0 {
		return multipartBody(&q.Ctx.Request, max)
	}
	body := q.Ctx.Request.Body()
	if int64(len(body)) > max {
		return nil, gate.ErrBodyTooLarge
	}
	return bytes.Clone(body), nil
}

// OddForm reports whether a handler may find another form in the body than its bytes have.
// Fiber undoes a Content-Encoding, and fasthttp reads the boundary in its own way.
func (q Request) OddForm() bool {
	h := &q.Ctx.Request.Header
	return len(h.Peek(fasthttp.HeaderContentEncoding)) > 0 || adapter.OddBoundary(string(h.ContentType()), string(h.MultipartFormBoundary()))
}

// streamed reads a body that fasthttp has not read yet, as under StreamRequestBody. It
// puts a stream in its place that begins from the start.
func (q Request) streamed(max int64) ([]byte, error) {
	native := &q.Ctx.Request
	if again, ok := native.BodyStream().(replayed); ok {
		return again.Bytes(max)
	}
	length := native.Header.ContentLength()
	switch {
	case length < 0 && readBefore(native.BodyStream()):
		return nil, gate.ErrBodyConsumed
	case int64(length) > max:
		return nil, gate.ErrBodyTooLarge
	}
	src := sourceOf(native)
	again := adapter.NewBody(src, int64(length), q.header().Get(fasthttp.HeaderContentEncoding) != "")
	body, err := again.Bytes(max)
	src.Reader = detached(src.Reader)
	native.SetBodyStream(replayed{again}, length)
	return body, err
}

// replayed is the stream that begins from the start.
type replayed struct{ *adapter.Body }

// source reads a stream of fasthttp. It reports an early end as io.ErrUnexpectedEOF,
// where fasthttp reports io.EOF as at any other end. It also stops fasthttp from putting
// the trailer into the header with the last chunk.
type source struct {
	io.Reader
	header        *fasthttp.RequestHeader
	read, missing int
	ended         bool
}

func sourceOf(native *fasthttp.Request) *source {
	if src, ok := native.BodyStream().(*source); ok {
		return src
	}
	return &source{Reader: native.BodyStream(), header: &native.Header, missing: native.Header.ContentLength()}
}

// keepTrailerAway replaces a streamed body that is still to be read with a source. It
// leaves a body that has a length: that has no trailer, and fasthttp would use the memory
// that its stream reads for another request.
func (q Request) keepTrailerAway() {
	native := &q.Ctx.Request
	if _, ok := native.BodyStream().(replayed); ok || !native.IsBodyStream() || native.Header.ContentLength() >= 0 {
		return // a gate has read it, or fasthttp has
	}
	src := sourceOf(native)
	src.Reader = detached(src.Reader)
	native.SetBodyStream(src, src.missing)
}

func (s *source) Read(p []byte) (int, error) {
	undo := swap(s.header, s.header)
	n, err := s.Reader.Read(p)
	undo()
	s.ended = s.ended || err != nil
	s.read += n
	s.missing -= n
	switch {
	case err != io.EOF:
	case s.read > 0 && s.missing > 0, s.missing < 0 && hungUp(s.Reader):
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (s *source) Close() error { return nil }

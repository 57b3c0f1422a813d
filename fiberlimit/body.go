package fiberlimit

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"reflect"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatehttp"
)

// Body returns the bytes on the wire, which c.Body does not: it undoes the
// Content-Encoding.
func (q request) Body(max int64) ([]byte, error) {
	if q.c.Request().IsBodyStream() {
		return q.streamed(max)
	}
	header := &q.c.Request().Header
	if len(header.MultipartFormBoundary()) > 0 && len(header.Peek(fiber.HeaderContentEncoding)) == 0 {
		return multipartBody(q.c.Request(), max)
	}
	body := q.c.Request().Body()
	if int64(len(body)) > max {
		return nil, gate.ErrBodyTooLarge
	}
	return bytes.Clone(body), nil
}

// streamed reads a body that fasthttp has not read yet, as it does under
// StreamRequestBody, and puts in its place a stream that begins anew.
func (q request) streamed(max int64) ([]byte, error) {
	native := q.c.Request()
	length := native.Header.ContentLength()
	r := &http.Request{ContentLength: int64(length), Header: q.header()}
	if again, ok := native.BodyStream().(replayed); ok {
		r.Body = again.ReadCloser
		return gatehttp.Request{HTTP: r}.Body(max)
	}
	if length < 0 && readBefore(native.BodyStream()) {
		return nil, gate.ErrBodyConsumed
	}
	src := sourceOf(native)
	r.Body = src
	body, err := gatehttp.Request{HTTP: r}.Body(max)
	if r.Body == src { // it says that it is too long, and was not read
		return body, err
	}
	src.Reader = detached(src.Reader)
	native.SetBodyStream(replayed{r.Body}, length)
	return body, err
}

// replayed is what a gate has put in the place of a stream.
type replayed struct{ io.ReadCloser }

// source is a stream of fasthttp's, whose early end is an io.EOF like any other.
// With the last of its chunks fasthttp would put a trailer into the header.
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

// keepTrailerAway puts a source in the place of a body of chunks that is still to
// be read.
func keepTrailerAway(native *fasthttp.Request) {
	if _, ok := native.BodyStream().(replayed); ok {
		return // a gate has read it
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

// hungUp says of a chunked stream that has ended that its connection did, where
// a chunk was to begin: fasthttp takes that for the end of the body. Its reader
// then holds nothing, while behind a last chunk it holds what that was read of.
func hungUp(stream io.Reader) bool {
	taken, known := buffered(stream)
	return known && len(taken) == 0
}

// readBefore says of a chunked stream that others have read of it. To ask one
// that has ended would wait for what the client says next.
func readBefore(stream io.Reader) bool {
	if src, ok := stream.(*source); ok {
		return src.read > 0 || src.ended
	}
	v := reflect.Indirect(reflect.ValueOf(stream))
	if v.Kind() != reflect.Struct {
		return false
	}
	if read := v.FieldByName("totalBytesRead"); read.IsValid() && read.CanInt() && read.Int() > 0 {
		return true
	}
	// Nothing, or a body of no chunks: before it stands the request's header, of
	// whose last line there is a colon or a space ahead.
	taken, _ := buffered(stream)
	last := bytes.TrimRight(taken, "\r\n")
	last = last[bytes.LastIndexByte(last, '\n')+1:]
	return len(taken) > 0 && !bytes.ContainsAny(last, ": \t")
}

// buffered is what a stream's reader still holds of what was taken from it.
func buffered(stream io.Reader) (taken []byte, known bool) {
	v := reflect.Indirect(reflect.ValueOf(stream))
	if v.Kind() != reflect.Struct {
		return nil, false
	}
	reader := v.FieldByName("reader")
	if !reader.IsValid() || reader.Type() != reflect.TypeFor[*bufio.Reader]() || reader.IsNil() {
		return nil, false
	}
	buf, read := reader.Elem().FieldByName("buf"), reader.Elem().FieldByName("r")
	if !buf.IsValid() || buf.Type() != reflect.TypeFor[[]byte]() || !read.IsValid() || !read.CanInt() {
		return nil, false
	}
	return buf.Bytes()[:read.Int()], true
}

func (s *source) Close() error { return nil }

// detached is stream, to go on with after SetBodyStream has taken its place:
// fasthttp then empties its own reader to use it again, but not a copy.
func detached(stream io.Reader) io.Reader {
	v := reflect.ValueOf(stream)
	if v.Kind() != reflect.Pointer {
		return stream
	}
	own := reflect.New(v.Type().Elem())
	own.Elem().Set(v.Elem())
	return own.Interface().(io.Reader)
}

package fiberlimit

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"reflect"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatehttp"
)

// Body returns the bytes on the wire, which c.Body does not: it undoes the
// Content-Encoding.
func (q request) Body(max int64) ([]byte, error) {
	if q.c.Request().IsBodyStream() {
		return q.streamed(max)
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
	src := &source{Reader: native.BodyStream(), missing: length}
	r.Body = src
	body, err := gatehttp.Request{HTTP: r}.Body(max)
	src.Reader = detached(src.Reader)
	native.SetBodyStream(replayed{r.Body}, length)
	return body, err
}

// replayed is what a gate has put in the place of a stream.
type replayed struct{ io.ReadCloser }

// source is a stream of fasthttp's, whose early end is an io.EOF like any other.
type source struct {
	io.Reader
	read, missing int
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
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
	v := reflect.Indirect(reflect.ValueOf(stream))
	if v.Kind() != reflect.Struct {
		return false
	}
	reader := v.FieldByName("reader")
	if !reader.IsValid() || reader.Type() != reflect.TypeFor[*bufio.Reader]() || reader.IsNil() {
		return false
	}
	read := reader.Elem().FieldByName("r")
	return read.IsValid() && read.CanInt() && read.Int() == 0
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

package gatefiber

import (
	"errors"
	"io"

	"github.com/valyala/fasthttp"
)

// stream is in the place of a response's stream. It tells when that was read to its end,
// or closed before.
type stream struct {
	io.Reader
	end    *end
	broken bool // reading it panicked
}

// ofStream returns a stream for the response that reads its present one. fasthttp asks
// some streams for more than to be read and closed. What is returned can do that too.
func (e *end) ofStream(response *fasthttp.Response) io.Reader {
	present := response.BodyStream()
	s := watched(&stream{Reader: present, end: e}, e)
	switch is := present.(type) {
	case *io.LimitedReader: // fasthttp would take its length
		if n := int(is.N); n >= 0 && int64(n) == is.N && response.Header.ContentLength() < 0 {
			response.Header.SetContentLength(n)
		}
	case io.WriterTo: // a file
		return &streamTo{s, is}
	case io.Closer:
	case closerWithError: // the answer to a request that a client of fasthttp has sent
		return &streamWithError{s, is}
	}
	return s
}

func (s *stream) Read(p []byte) (n int, err error) {
	s.broken = true
	n, err = s.Reader.Read(p)
	s.broken = false
	if err != nil {
		if panicked := s.end.reach(err != io.EOF); panicked != nil {
			err = panicked
		}
	}
	return n, err
}

// Close closes the stream that the handler has set.
func (s *stream) Close() (err error) {
	switch c := s.Reader.(type) {
	case io.Closer:
		err = c.Close()
	case closerWithError:
		err = c.CloseWithError(nil)
	}
	return errors.Join(err, s.end.reach(s.broken))
}

// streamTo is a stream that can write itself, such as a file, which the system can send.
type streamTo struct {
	*stream
	to io.WriterTo
}

// WriteTo cannot tell a stream that cannot be read from a client that has gone away. It
// leaves both to Close.
func (s *streamTo) WriteTo(w io.Writer) (n int64, err error) {
	s.broken = true
	n, err = s.to.WriteTo(w)
	s.broken = false
	if err == nil {
		err = s.end.reach(false)
	}
	return n, err
}

// closerWithError is fasthttp's ReadCloserWithError, which v1.51 does not have.
type closerWithError interface{ CloseWithError(err error) error }

// streamWithError is a stream that is closed in no other way.
type streamWithError struct {
	stream *stream
	closer closerWithError
}

func (s *streamWithError) Read(p []byte) (int, error) { return s.stream.Read(p) }

func (s *streamWithError) CloseWithError(err error) error {
	return errors.Join(s.closer.CloseWithError(err), s.stream.end.reach(s.stream.broken))
}

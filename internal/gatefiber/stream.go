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
	if is, limited := present.(*io.LimitedReader); limited { // fasthttp would take its length
		if n := int(is.N); n >= 0 && int64(n) == is.N && response.Header.ContentLength() < 0 {
			response.Header.SetContentLength(n)
		}
	}
	to, writes := present.(io.WriterTo) // a file
	_, closes := present.(io.Closer)
	told, isTold := present.(closerWithError) // the answer to a request that a client of fasthttp has sent
	isTold = isTold && !closes
	switch {
	case writes && isTold:
		return struct {
			io.Reader
			io.WriterTo
			closerWithError
		}{s, writerTo{s, to}, withError{s, told}}
	case isTold:
		return struct {
			io.Reader
			closerWithError
		}{s, withError{s, told}}
	case writes:
		return struct {
			io.ReadCloser
			io.WriterTo
		}{s, writerTo{s, to}}
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
	if c, is := s.Reader.(io.Closer); is {
		err = c.Close()
	}
	return errors.Join(err, s.end.reach(s.broken))
}

// writerTo is a stream that can write itself, such as a file, which the system can send.
type writerTo struct {
	stream *stream
	to     io.WriterTo
}

// WriteTo cannot tell a stream that cannot be read from a client that has gone away. It
// leaves both to the end of the stream.
func (w writerTo) WriteTo(to io.Writer) (n int64, err error) {
	w.stream.broken = true
	n, err = w.to.WriteTo(to)
	w.stream.broken = false
	if err == nil {
		err = w.stream.end.reach(false)
	}
	return n, err
}

// closerWithError is fasthttp's ReadCloserWithError, which v1.51 does not have.
type closerWithError interface{ CloseWithError(err error) error }

// withError is a stream that is closed in no other way. It must be told of an error: a
// client of fasthttp would use a connection again that has the rest of an answer.
type withError struct {
	stream *stream
	closer closerWithError
}

func (w withError) CloseWithError(err error) error {
	return errors.Join(w.closer.CloseWithError(err), w.stream.end.reach(w.stream.broken))
}

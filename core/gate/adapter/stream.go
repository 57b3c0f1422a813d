package adapter

import (
	"errors"
	"io"
)

// stream is in the place of a response's stream. It tells when that was read to its end,
// or closed before.
type stream struct {
	io.Reader
	end    *End
	broken bool // reading it panicked
}

// Stream returns a stream to put in the place of present, the stream of a response's body.
// It reads present, and the end is reached when present was read to its end, or else when
// the stream is closed or the garbage collector finds it. If reading present fails or
// panics, the response counts as broken.
//
// What Stream returns has the methods Close, WriteTo and CloseWithError if present has
// them. It has Close in any case, unless present has CloseWithError and no Close.
func (e *End) Stream(present io.Reader) io.Reader {
	s := Watch(&stream{Reader: present, end: e}, e)
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
		broken := err != io.EOF && !errors.Is(err, errPanicked) // present may be such a stream, too
		if panicked := s.end.Reach(broken); panicked != nil {
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
	return errors.Join(err, s.end.Reach(s.broken))
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
		err = w.stream.end.Reach(false)
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
	return errors.Join(w.closer.CloseWithError(err), w.stream.end.Reach(w.stream.broken))
}

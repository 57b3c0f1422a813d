package gatehttp

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/felixge/httpsnoop"
)

// Wrap returns a writer that sends through w and tells the recorder. It has the optional
// interfaces of w: Flusher, Hijacker, CloseNotifier, Pusher, io.ReaderFrom, those of
// http.ResponseController, and Unwrap. If Flush or Hijack is found behind Unwrap alone, the
// writer has these two and no other.
//
// One thing is lost: http.MaxBytesReader does not close the connection any more if a body
// is too long, because it asks net/http's own writer for that, by a method that is not
// exported. A handler that wants the connection closed sets "Connection: close".
func (rec *Recorder) Wrap(w http.ResponseWriter) http.ResponseWriter {
	if full, ok := w.(usual); ok {
		if _, pushes := w.(http.Pusher); !pushes {
			return &recorded{full, rec}
		}
	}
	return httpsnoop.Wrap(surface(w), httpsnoop.Hooks{
		WriteHeader: func(next httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
			return func(status int) { rec.writeHeader(next, status) }
		},
		Write: func(next httpsnoop.WriteFunc) httpsnoop.WriteFunc {
			return func(p []byte) (int, error) { return rec.write(next, p) }
		},
		ReadFrom: func(next httpsnoop.ReadFromFunc) httpsnoop.ReadFromFunc {
			return func(src io.Reader) (int64, error) { return rec.readFrom(next, src) }
		},
		Flush: func(next httpsnoop.FlushFunc) httpsnoop.FlushFunc {
			return func() { rec.flush(next) }
		},
		Hijack: func(next httpsnoop.HijackFunc) httpsnoop.HijackFunc {
			return func() (net.Conn, *bufio.ReadWriter, error) { return rec.hijack(next) }
		},
	})
}

func (rec *Recorder) writeHeader(next httpsnoop.WriteHeaderFunc, status int) {
	rec.Commit(status)
	next(status)
}

func (rec *Recorder) write(next httpsnoop.WriteFunc, p []byte) (int, error) {
	rec.Commit(http.StatusOK)
	n, err := next(p)
	return rec.Wrote(p, n, err)
}

func (rec *Recorder) readFrom(next httpsnoop.ReadFromFunc, src io.Reader) (int64, error) {
	rec.Commit(http.StatusOK)
	if !rec.full() {
		return rec.copied(next, src)
	}
	// src is passed on as it is: so a file can go to the socket without a copy.
	n, err := next(src)
	rec.skipped(n, err)
	return n, err
}

func (rec *Recorder) flush(next httpsnoop.FlushFunc) {
	rec.Flushed()
	next()
}

func (rec *Recorder) hijack(next httpsnoop.HijackFunc) (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := next()
	if err == nil {
		rec.Hijacked()
	}
	return conn, rw, err
}

// copied notes what next reads from src. If the client goes away before the end, it also
// notes the rest.
func (rec *Recorder) copied(next httpsnoop.ReadFromFunc, src io.Reader) (int64, error) {
	from := &noted{Reader: src, rec: rec}
	n, err := next(from)
	if err == nil {
		return n, nil
	}
	for from.err == nil && rec.alone(err) {
		_, _ = from.Read(make([]byte, 4<<10))
	}
	if from.err == io.EOF && rec.alone(err) {
		return from.n, nil
	}
	rec.cut = true
	return n, err
}

// noted tells the recorder what is read.
type noted struct {
	io.Reader
	rec *Recorder
	n   int64
	err error
}

func (s *noted) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	_, _ = s.rec.Wrote(p[:n], n, nil)
	s.n, s.err = s.n+int64(n), err
	return n, err
}

// surface gives w the methods Flush and Hijack that it has only behind Unwrap, or as FlushError.
// http.ResponseController would find them there, and would bypass the recorder.
func surface(w http.ResponseWriter) http.ResponseWriter {
	flush, hijack := reaches(w, isFlusher), reaches(w, isHijacker)
	_, flushes := w.(http.Flusher)
	switch {
	case flushes == flush && isHijacker(w) == hijack:
		return w
	case flush && hijack:
		return struct {
			unwrapper
			flusher
			hijacker
		}{unwrapper{w}, flusher{w}, hijacker{w}}
	case flush:
		return struct {
			unwrapper
			flusher
		}{unwrapper{w}, flusher{w}}
	}
	return struct {
		unwrapper
		hijacker
	}{unwrapper{w}, hijacker{w}}
}

func isFlusher(w http.ResponseWriter) bool {
	switch w.(type) {
	case http.Flusher, interface{ FlushError() error }:
		return true
	}
	return false
}

func isHijacker(w http.ResponseWriter) bool {
	_, ok := w.(http.Hijacker)
	return ok
}

// reaches reports whether a writer has methods, itself or behind Unwrap.
func reaches(w http.ResponseWriter, has func(http.ResponseWriter) bool) bool {
	for !has(w) {
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = u.Unwrap()
	}
	return true
}

type unwrapper struct{ http.ResponseWriter }

func (u unwrapper) Unwrap() http.ResponseWriter { return u.ResponseWriter }

type flusher struct{ w http.ResponseWriter }

func (f flusher) Flush()            { _ = f.FlushError() }
func (f flusher) FlushError() error { return http.NewResponseController(f.w).Flush() }

type hijacker struct{ w http.ResponseWriter }

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(h.w).Hijack()
}

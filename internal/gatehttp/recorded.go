package gatehttp

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"time"
)

// usual is what net/http's own writer for HTTP/1 can do.
type usual interface {
	http.ResponseWriter
	http.Flusher
	http.Hijacker
	http.CloseNotifier //nolint:staticcheck // deprecated, and still asked for
	io.ReaderFrom
	io.StringWriter
	FlushError() error
	SetReadDeadline(deadline time.Time) error
	SetWriteDeadline(deadline time.Time) error
	EnableFullDuplex() error
}

// recorded is what httpsnoop would make from such a writer, in one allocation instead of
// a dozen.
type recorded struct {
	usual
	rec *Recorder
}

func (r *recorded) Unwrap() http.ResponseWriter       { return r.usual }
func (r *recorded) WriteHeader(status int)            { r.rec.writeHeader(r.usual.WriteHeader, status) }
func (r *recorded) Write(p []byte) (int, error)       { return r.rec.write(r.usual.Write, p) }
func (r *recorded) WriteString(s string) (int, error) { return r.Write([]byte(s)) }
func (r *recorded) ReadFrom(src io.Reader) (int64, error) {
	return r.rec.readFrom(r.usual.ReadFrom, src)
}

func (r *recorded) Flush() { r.rec.flush(r.usual.Flush) }

func (r *recorded) FlushError() (err error) {
	r.rec.flush(func() { err = r.usual.FlushError() })
	return err
}

func (r *recorded) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return r.rec.hijack(r.usual.Hijack)
}

package gatehttp

import (
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
)

// Recorder notes what [gate.Pass.Leave] is to see of one response. [Recorder.Wrap] feeds
// it from an http.ResponseWriter. An adapter with a writer type of its own calls Commit,
// Wrote, Flushed and Hijacked where that writer does these things. A Recorder is for one
// goroutine, as the writer is.
type Recorder struct {
	head    bool
	capture int64
	live    http.Header
	outside []string // the Content-Encoding that middleware outside will apply

	status   int // 0 until Commit
	header   http.Header
	body     []byte
	length   int64
	start    []byte // the bytes from which the Content-Type is guessed
	sniffing bool
	cut      bool // flushed, broken off
	hijacked bool
	refused  bool
}

// NewRecorder returns a recorder for the response to a request with this method. header
// is what the writer's Header method returns.
func NewRecorder(header http.Header, method string, capture int64) *Recorder {
	return &Recorder{
		head: method == http.MethodHead, capture: capture, live: header, outside: slices.Clone(header[fieldEncoding]),
	}
}

const fieldEncoding = "Content-Encoding"

// sniffLength is how many bytes of a body [http.DetectContentType] looks at.
const sniffLength = 512

// Commit notes that the status line and the header are sent now. Only the first call
// counts. An informational status (RFC 9110 section 15.2) does not count, except 101,
// after which nothing follows.
func (rec *Recorder) Commit(status int) {
	if rec.status != 0 || rec.hijacked || status > 999 || status < 200 && status != http.StatusSwitchingProtocols {
		return
	}
	rec.status = status
	rec.header = rec.live.Clone()
	mark, marked := rec.header[refused(status)]
	rec.refused = marked && mark == nil                       // a field copied from a request or a response has a line
	if slices.Equal(rec.header[fieldEncoding], rec.outside) { // the body that is written here is not encoded yet
		delete(rec.header, fieldEncoding)
	}
	_, typed := rec.header["Content-Type"]
	rec.sniffing = !typed && gate.BodyAllowed(status) &&
		rec.header.Get(fieldEncoding) == "" && rec.header.Get("Transfer-Encoding") == ""
}

// Committed reports whether the status line was sent or the connection was taken over.
func (rec *Recorder) Committed() bool { return rec.status != 0 || rec.hijacked }

// Wrote notes a write of p to the body, of which n bytes were written and which ended
// with err. It returns what to tell the handler. If the client is gone and the whole body
// is to be captured, it reports success. So the handler goes on, and Leave sees all that
// the client would have seen.
func (rec *Recorder) Wrote(p []byte, n int, err error) (int, error) {
	if !gate.BodyAllowed(rec.status) {
		return n, err
	}
	if rec.sniffing && len(rec.start) < sniffLength {
		rec.start = append(rec.start, p[:min(len(p), sniffLength-len(rec.start))]...)
	}
	if rec.head {
		return n, err
	}
	rec.length += int64(len(p))
	if room := rec.capture - int64(len(rec.body)); room > 0 {
		rec.body = append(rec.body, p[:min(int64(len(p)), room)]...)
	}
	if rec.alone(err) {
		return len(p), nil
	}
	rec.cut = rec.cut || err != nil
	return n, err
}

// alone reports whether err means that the client is gone, and the recorder has the whole
// body nevertheless.
func (rec *Recorder) alone(err error) bool {
	return err != nil && !rec.cut && rec.capture > 0 && rec.length <= rec.capture &&
		!errors.Is(err, http.ErrContentLength) && !errors.Is(err, http.ErrHijacked)
}

// full reports whether further bytes of the body change nothing but its length.
func (rec *Recorder) full() bool {
	return (rec.noBody() || int64(len(rec.body)) >= rec.capture) && (!rec.sniffing || len(rec.start) == sniffLength)
}

// skipped notes a copy of n bytes that ended with err, of a body for which [Recorder.full]
// was true already.
func (rec *Recorder) skipped(n int64, err error) {
	if !rec.noBody() {
		rec.length += n
		rec.cut = rec.cut || err != nil
	}
}

// noBody reports whether the client gets no body, whatever the handler writes.
func (rec *Recorder) noBody() bool { return rec.head || !gate.BodyAllowed(rec.status) }

// Flushed notes that the response was pushed to the client as far as it is there.
func (rec *Recorder) Flushed() {
	rec.Commit(http.StatusOK)
	rec.cut = true
	rec.guessType()
}

// Hijacked notes that the handler took the connection over.
func (rec *Recorder) Hijacked() { rec.hijacked, rec.cut = true, true }

// Reply returns what the client sees, once the handler has returned. A handler that wrote
// nothing has answered 200. If it took the connection over before a status was sent, the
// status is 0.
func (rec *Recorder) Reply() *gate.Reply {
	rec.Commit(http.StatusOK)
	rec.guessType()
	return &gate.Reply{
		Status:  rec.status,
		Header:  adapter.Fields(rec.header),
		Body:    rec.body,
		Partial: rec.cut || rec.length > rec.capture || rec.misdeclared(),
		Refused: rec.refused,
	}
}

// guessType adds the Content-Type that net/http puts on a response without one.
func (rec *Recorder) guessType() {
	if rec.sniffing && len(rec.start) > 0 {
		rec.header.Set("Content-Type", http.DetectContentType(rec.start))
	}
	rec.sniffing = false
}

// misdeclared reports whether the handler wrote less or more than it declared. The client
// then gets less than was written, or the server breaks the connection off.
func (rec *Recorder) misdeclared() bool {
	length := rec.header.Get("Content-Length")
	if length == "" { // ParseInt would allocate an error
		return false
	}
	declared, err := strconv.ParseInt(length, 10, 64)
	return err == nil && !rec.noBody() && rec.length != declared
}

package adapter

import (
	"errors"
	"io"
	"math"
	"net/http"
	"slices"

	"github.com/neap-go/neap/core/gate"
)

// Body is the body of a request that both gates and the handler can read. An adapter puts
// it in the place of the framework's own. If the server reads a whole body before any
// handler runs, you do not need it. A Body is for one goroutine at a time, as a request
// is.
type Body struct {
	src     io.ReadCloser
	length  int64 // as it was declared, or -1
	encoded bool

	ahead  []byte // what was read from src for a gate, from its first byte on
	next   int    // ahead[:next] went to the handler
	past   bool   // the handler has read from src itself
	end    error  // how src ended: io.EOF, or what broke it
	closed bool
}

// NewBody returns the body that src has. length is the declared Content-Length, and -1 if
// there is none. encoded says that the request has a Content-Encoding: middleware may then
// have decoded the body, so that its length differs from the declared one.
//
// src must report a body that ended early with another error than io.EOF, unless length
// tells.
func NewBody(src io.ReadCloser, length int64, encoded bool) *Body {
	return &Body{src: src, length: length, encoded: encoded}
}

// Bytes reads the whole body, of at most max bytes, and leaves it readable. It is what
// [gate.Request.Body] returns. It keeps no more than the largest max that it was given,
// plus one byte, and grows with what was sent, not with what was declared.
//
// It fails with [gate.ErrBodyTooLarge] if the body is longer than max, with
// [gate.ErrBodyBroken] if it cannot be read to its end, and with [gate.ErrBodyConsumed]
// if others have read from it before. The same call returns the same result again. After
// each call the handler reads what it would have read without the gate.
func (b *Body) Bytes(max int64) ([]byte, error) {
	if !b.made() {
		return nil, errNotMade
	}
	max = min(max, math.MaxInt64-1)
	if b.length > max && b.end == nil {
		return nil, gate.ErrBodyTooLarge
	}
	if b.past {
		return nil, gate.ErrBodyConsumed
	}
	b.readAhead(max + 1)
	if int64(len(b.ahead)) > max {
		return nil, gate.ErrBodyTooLarge
	}
	if err := b.failure(); err != nil {
		return nil, err
	}
	b.rewind()
	return slices.Clip(b.ahead), nil
}

func (b *Body) made() bool { return b != nil && b.src != nil }

var errNotMade = errors.New("adapter: a nil or zero Body: make it with NewBody")

// missing tells a body that others have read from one that ended: both end with io.EOF.
func (b *Body) missing() error {
	if got := len(b.ahead); int64(got) >= b.length || got > 0 && b.encoded {
		return nil
	}
	return gate.ErrBodyConsumed
}

func (b *Body) readAhead(limit int64) {
	for b.end == nil && int64(len(b.ahead)) < limit {
		if len(b.ahead) == cap(b.ahead) {
			b.ahead = append(make([]byte, 0, b.room(limit)), b.ahead...)
		}
		room := b.ahead[len(b.ahead):min(int64(cap(b.ahead)), limit)]
		n, err := b.src.Read(room)
		b.ahead = b.ahead[:len(b.ahead)+n]
		b.end = err
	}
}

// room doubles what there is. So memory follows what was sent, and not what was declared
// or what is allowed.
func (b *Body) room(limit int64) int64 {
	have := int64(len(b.ahead))
	more := max(have, 512)
	if left := b.length - have + 1; left > more {
		more = min(max(more, 32<<10), left)
	} else if left > 0 {
		more = left
	}
	return min(have+more, limit)
}

func (b *Body) failure() error {
	var tooLarge *http.MaxBytesError
	switch {
	case b.end == io.EOF:
		return b.missing()
	case errors.As(b.end, &tooLarge):
		return gate.ErrBodyTooLarge
	case errors.Is(b.end, http.ErrBodyReadAfterClose):
		return gate.ErrBodyConsumed
	}
	return gate.ErrBodyBroken
}

// rewind gives the handler the whole body again, even if middleware between two gates has
// read it and closed it.
func (b *Body) rewind() { b.next, b.closed = 0, false }

// Read reads the body from its first byte on, or from where the last Read ended.
func (b *Body) Read(p []byte) (int, error) {
	if !b.made() {
		return 0, errNotMade
	}
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	if b.next < len(b.ahead) {
		n := copy(p, b.ahead[b.next:])
		b.next += n
		return n, nil
	}
	if b.end != nil {
		return 0, b.end
	}
	n, err := b.src.Read(p)
	b.past = b.past || n > 0
	b.end = err
	return n, err
}

// Close closes what NewBody was given. A later call of Bytes opens what was read again.
func (b *Body) Close() error {
	if !b.made() {
		return errNotMade
	}
	b.closed = true
	return b.src.Close()
}

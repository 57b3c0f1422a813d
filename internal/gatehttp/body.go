package gatehttp

import (
	"errors"
	"io"
	"math"
	"net/http"
	"slices"

	"github.com/neap-go/neap/core/gate"
)

// Body reads the whole body and leaves it readable for the handler. It keeps the bytes in
// the request's own Body, so that a second gate finds them, too. It never keeps more than
// the largest max that was asked for, plus one.
//
// It fails with [gate.ErrBodyTooLarge] if the body is longer than max, with
// [gate.ErrBodyBroken] if it cannot be read to its end, and with [gate.ErrBodyConsumed]
// if others have read from it before. The same call returns the same result again. After
// each call the handler reads what it would have read without the gate.
func (q Request) Body(max int64) ([]byte, error) {
	r := q.HTTP
	b, ok := r.Body.(*body)
	if !ok {
		if r.Body == nil || r.Body == http.NoBody {
			return nil, missing(r, 0)
		}
		if r.ContentLength < 0 && drained(r.Body) {
			return nil, gate.ErrBodyConsumed
		}
		if r.ContentLength > max {
			// The Body is not replaced here. With a Body of another type net/http would wait
			// for the body before it sends the refusal, even if the client waits for "100
			// Continue".
			return nil, gate.ErrBodyTooLarge
		}
		b = &body{src: r.Body}
		r.Body = b
	}
	max = min(max, math.MaxInt64-1)
	if r.ContentLength > max && b.end == nil {
		return nil, gate.ErrBodyTooLarge
	}
	if b.past {
		return nil, gate.ErrBodyConsumed
	}
	b.readAhead(max+1, r.ContentLength)
	if int64(len(b.ahead)) > max {
		return nil, gate.ErrBodyTooLarge
	}
	if err := b.failure(r); err != nil {
		return nil, err
	}
	b.rewind()
	return slices.Clip(b.ahead), nil
}

// missing tells a body that others have read from one that ended: both end with io.EOF.
// With a Content-Encoding, middleware may have decoded the body, whose length then
// differs from the declared one.
func missing(r *http.Request, got int) error {
	if int64(got) >= r.ContentLength || got > 0 && r.Header.Get("Content-Encoding") != "" {
		return nil
	}
	return gate.ErrBodyConsumed
}

// body gives the handler what a gate has read before it.
type body struct {
	src    io.ReadCloser
	ahead  []byte // what was read from src for a gate, from its first byte on
	next   int    // ahead[:next] went to the handler
	past   bool   // the handler has read from src itself
	end    error  // how src ended: io.EOF, or what broke it
	closed bool
}

func (b *body) readAhead(limit, declared int64) {
	for b.end == nil && int64(len(b.ahead)) < limit {
		if len(b.ahead) == cap(b.ahead) {
			b.ahead = append(make([]byte, 0, b.room(limit, declared)), b.ahead...)
		}
		room := b.ahead[len(b.ahead):min(int64(cap(b.ahead)), limit)]
		n, err := b.src.Read(room)
		b.ahead = b.ahead[:len(b.ahead)+n]
		b.end = err
	}
}

// room doubles what there is. So memory follows what was sent, and not what was declared
// or what is allowed.
func (b *body) room(limit, declared int64) int64 {
	have := int64(len(b.ahead))
	more := max(have, 512)
	if left := declared - have + 1; left > more {
		more = min(max(more, 32<<10), left)
	} else if left > 0 {
		more = left
	}
	return min(have+more, limit)
}

func (b *body) failure(r *http.Request) error {
	var tooLarge *http.MaxBytesError
	switch {
	case b.end == io.EOF:
		return missing(r, len(b.ahead))
	case errors.As(b.end, &tooLarge):
		return gate.ErrBodyTooLarge
	case errors.Is(b.end, http.ErrBodyReadAfterClose):
		return gate.ErrBodyConsumed
	}
	return gate.ErrBodyBroken
}

// rewind gives the handler the whole body again, even if middleware between two gates has
// read it and closed it.
func (b *body) rewind() { b.next, b.closed = 0, false }

func (b *body) Read(p []byte) (int, error) {
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

func (b *body) Close() error {
	b.closed = true
	return b.src.Close()
}

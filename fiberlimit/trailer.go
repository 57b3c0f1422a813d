package fiberlimit

import (
	"bytes"
	"maps"
	"net/http"
	"reflect"
	"slices"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// A chunked body may end with a trailer: fields that the client writes behind
// everything that proxies have written or stripped. fasthttp appends them to the
// header, declared or not, as soon as somebody has read the body to its end, and
// nothing in the header then says which lines those are. So behind a chunked
// body a gate sees a field only as the header of the request had it, which
// RawHeaders tells. A field that differs from that is unsure: a trailer may have
// made it, or middleware outside the gate. It is left out, and keys refuse it.

// trailed says that the header may have fields of a trailer. One that middleware
// has made anew has lost its raw header. Its length then says what it can: fasthttp
// has -1 for chunks, and 0 for chunks without a byte in them too. A request that no
// server of fasthttp's has read, such as one of net/http handed on, has no trailer.
func (q request) trailed() bool {
	if q.c.Locals(trailerDropped{}) != nil {
		return false
	}
	header := &q.c.Request().Header
	if raw := header.RawHeaders(); len(raw) > 0 {
		return chunked(raw)
	}
	length := header.ContentLength()
	return q.c.Context().ConnRequestNum() > 0 && (length == 0 || length == -1)
}

func chunked(raw []byte) bool {
	for line := range bytes.Lines(raw) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		if bytes.EqualFold(name, []byte(fiber.HeaderTransferEncoding)) {
			return true
		}
	}
	return false
}

// trailerDropped is the key under which a request notes that [DropTrailers] has
// seen it, as it came.
type trailerDropped struct{}

// DropTrailers is middleware for app.Use, before any other. fasthttp puts the
// fields of a request's trailer into its header, where they look as if a proxy
// had let them pass; DropTrailers takes them out, and keeps those away that come
// with a body which is still to be read. net/http keeps them apart by itself.
//
// No gate needs it to be safe. Without it a gate refuses to key a chunked request
// by a field that middleware has set or changed, as it cannot tell it from one of
// the trailer. With it the gate sees what that middleware made, and handlers that
// read the header themselves are safe from trailers too.
//
// What middleware before DropTrailers sets in the header of a chunked request is
// taken out as well.
func DropTrailers(c *fiber.Ctx) error {
	if len(c.Request().Header.RawHeaders()) == 0 {
		return c.Next() // what came is not known any more
	}
	if q := (request{c}); q.trailed() {
		swap(&c.Request().Header, q.untrailed(q.header()))
		if c.Request().IsBodyStream() {
			keepTrailerAway(c.Request())
		}
	}
	c.Locals(trailerDropped{}, true)
	return c.Next()
}

// sure returns the fields to which no trailer can have added a line.
func (q request) sure() http.Header {
	header := q.header()
	for name := range header {
		if q.Unsure(name) {
			delete(header, name)
		}
	}
	return header
}

// untrailed is a copy of the header that has the known lines of each field.
func (q request) untrailed(known http.Header) *fasthttp.RequestHeader {
	var clean fasthttp.RequestHeader
	q.c.Request().Header.CopyTo(&clean)
	spelled := map[string][]string{} // by the canonical name
	now := map[string][]string{}
	clean.VisitAll(func(key, value []byte) {
		name := http.CanonicalHeaderKey(string(key))
		spelled[name] = append(spelled[name], string(key))
		now[name] = append(now[name], string(value))
	})
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if slices.Contains(unlisted, name) || slices.Equal(now[name], known[name]) {
			continue
		}
		for _, key := range spelled[name] {
			clean.Del(key)
		}
		for _, line := range known[name] {
			clean.Add(name, line)
		}
	}
	return &clean
}

// swap puts another header in the place of h, and returns what undoes that. Its
// lines themselves stay as they are: middleware may have kept strings of them.
func swap(h, with *fasthttp.RequestHeader) (undo func()) {
	own := reflect.ValueOf(h).Elem()
	before := reflect.New(own.Type()).Elem()
	before.Set(own)
	own.Set(reflect.ValueOf(with).Elem())
	return func() { own.Set(before) }
}

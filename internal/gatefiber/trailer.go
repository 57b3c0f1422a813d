package gatefiber

import (
	"bytes"
	"maps"
	"net/http"
	"reflect"
	"slices"

	"github.com/valyala/fasthttp"
)

// A chunked body may end with a trailer: fields that the client writes after all that
// proxies have written or stripped. fasthttp appends them to the header, declared or not,
// as soon as the body was read to its end. Nothing in the header then says which lines
// those are. So a gate sees a field of a chunked request only as the header of the request
// had it, which RawHeaders tells. A field that differs from that is unsure: a trailer may
// have made it, or middleware outside the gate. It is left out, and keys refuse it.

// trailed reports whether the header may have fields of a trailer. If middleware has made
// the header anew, the raw header is gone, and only the length is left to decide by.
// fasthttp has -1 for chunks, and 0 also for chunks without a byte in them. A request
// that no server of fasthttp has read, such as one that net/http passes on, has no
// trailer.
func (q Request) trailed() bool {
	if q.Ctx.UserValue(trailerDropped{}) != nil {
		return false
	}
	header := &q.Ctx.Request.Header
	if raw := header.RawHeaders(); len(raw) > 0 {
		return chunked(raw)
	}
	length := header.ContentLength()
	return q.Ctx.ConnRequestNum() > 0 && (length == 0 || length == -1)
}

func chunked(raw []byte) bool {
	for line := range bytes.Lines(raw) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		if bytes.EqualFold(name, []byte(fasthttp.HeaderTransferEncoding)) {
			return true
		}
	}
	return false
}

// trailerDropped is the key under which a request notes that DropTrailer has seen it as
// it arrived.
type trailerDropped struct{}

// DropTrailer removes the fields of the trailer from the header. It also keeps those away
// that come with a body which is still to be read.
func (q Request) DropTrailer() {
	if len(q.Ctx.Request.Header.RawHeaders()) == 0 {
		return // the header as it arrived is gone
	}
	if q.trailed() {
		swap(&q.Ctx.Request.Header, q.untrailed(q.header()))
		q.keepTrailerAway()
	}
	q.Ctx.SetUserValue(trailerDropped{}, true)
}

// HideTrailer removes from the header, until show is called, each field of which a
// trailer may have brought a line.
func (q Request) HideTrailer() (show func()) {
	if !q.trailed() {
		return func() {}
	}
	show = swap(&q.Ctx.Request.Header, q.untrailed(q.sure()))
	q.keepTrailerAway()
	return show
}

// sure returns the fields to which no trailer can have added a line.
func (q Request) sure() http.Header {
	header := q.header()
	for name := range header {
		if q.Unsure(name) {
			delete(header, name)
		}
	}
	return header
}

// untrailed is a copy of the header that has the known lines of each field, in their
// order.
func (q Request) untrailed(known http.Header) *fasthttp.RequestHeader {
	var clean fasthttp.RequestHeader
	q.Ctx.Request.Header.CopyTo(&clean)
	spelled := map[string][]string{} // by the canonical name
	now := map[string][]string{}
	clean.VisitAll(func(key, value []byte) {
		name := http.CanonicalHeaderKey(string(key))
		spelled[name] = append(spelled[name], string(key))
		now[name] = append(now[name], string(value))
	})
	changed := slices.DeleteFunc(slices.Sorted(maps.Keys(now)), func(name string) bool {
		ordered := !shuffles || // removing other fields does not change its order
			len(now[name]) < 2
		return slices.Contains(unlisted, name) || ordered && slices.Equal(now[name], known[name])
	})
	for _, name := range changed {
		for _, key := range spelled[name] {
			clean.Del(key)
		}
	}
	for _, name := range changed {
		for _, line := range known[name] {
			clean.Add(name, line)
		}
	}
	return &clean
}

// swap replaces h with another header, and returns a function that undoes that. The lines
// of h stay as they are: middleware may have kept strings of them.
func swap(h, with *fasthttp.RequestHeader) (undo func()) {
	own := reflect.ValueOf(h).Elem()
	before := reflect.New(own.Type()).Elem()
	before.Set(own)
	own.Set(reflect.ValueOf(with).Elem())
	return func() { own.Set(before) }
}

package gatefiber

import (
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate/adapter"
)

// unlisted are fields that net/http removes from a request's header.
var unlisted = []string{fasthttp.HeaderHost, fasthttp.HeaderTrailer, fasthttp.HeaderTransferEncoding}

// merged are the fields for which fasthttp keeps one line: the last one, or all of them
// joined.
var merged = []string{fasthttp.HeaderContentType, fasthttp.HeaderUserAgent, fasthttp.HeaderCookie}

// Header returns the lines of a field that a gate may see.
func (q Request) Header(name string) []string {
	name = http.CanonicalHeaderKey(name)
	if slices.Contains(unlisted, name) {
		return nil
	}
	h := &q.Ctx.Request.Header
	now := lines(name, h.VisitAll)
	if trailed := q.trailed(); trailed || slices.Contains(merged, name) {
		return believed(h, name, lines(name, h.VisitAllInOrder), now, trailed)
	}
	if shuffles && len(now) > 1 {
		return asSent(lines(name, h.VisitAllInOrder), now)
	}
	return now
}

// Unsure reports whether fasthttp has lines of a field that Header leaves out.
func (q Request) Unsure(name string) bool {
	name = http.CanonicalHeaderKey(name)
	if !q.trailed() || slices.Contains(unlisted, name) { // which no trailer can bring
		return false
	}
	told, all := len(q.Header(name)), len(lines(name, q.Ctx.Request.Header.VisitAll))
	if slices.Contains(merged, name) {
		return told == 0 && all > 0
	}
	return told < all
}

// Headers yields every field that a gate may see, sorted by name.
func (q Request) Headers() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, f := range adapter.Fields(q.header()) {
			if !yield(f.Name, f.Value) {
				return
			}
		}
	}
}

// header returns every line that a gate may see.
func (q Request) header() http.Header {
	h, trailed := &q.Ctx.Request.Header, q.trailed()
	header := all(h.VisitAll)
	for _, name := range unlisted {
		header.Del(name)
	}
	sent := all(h.VisitAllInOrder)
	for name, now := range header {
		if !trailed && !slices.Contains(merged, name) {
			if shuffles {
				header[name] = asSent(sent[name], now)
			}
			continue
		}
		if header[name] = believed(h, name, sent[name], now, trailed); len(header[name]) == 0 {
			delete(header, name)
		}
	}
	return header
}

func lines(name string, visit func(func(key, value []byte))) (lines []string) {
	visit(func(key, value []byte) {
		if len(key) == len(name) && http.CanonicalHeaderKey(string(key)) == name {
			lines = append(lines, string(value))
		}
	})
	return lines
}

func all(visit func(func(key, value []byte))) http.Header {
	header := http.Header{}
	visit(func(key, value []byte) { header.Add(string(key), string(value)) })
	return header
}

// believed returns the lines of a field that a gate may see. sent are its lines in the
// header as it arrived; now are those that fasthttp has at present.
func believed(h *fasthttp.RequestHeader, name string, sent, now []string, trailed bool) []string {
	switch name {
	case fasthttp.HeaderContentType:
		return unmerged(sent, h.ContentType())
	case fasthttp.HeaderUserAgent:
		return unmerged(sent, h.UserAgent())
	case fasthttp.HeaderCookie:
		return cookies(sent, now, trailed)
	}
	switch n := len(sent); {
	case !trailed, len(now) == 0, inNoTrailer(name):
		return now
	case n > 0 && len(now) >= n && slices.Equal(now[:n], sent):
		return sent
	}
	return nil
}

// unmerged returns the lines of a field for which fasthttp keeps only the last line,
// without the lines of a trailer.
func unmerged(sent []string, kept []byte) []string {
	switch n := len(sent); {
	case n > 1 && sent[n-1] == string(kept):
		return sent
	case len(kept) == 0:
		return nil
	}
	return []string{string(kept)}
}

// cookies returns the lines of Cookie that a gate may see. fasthttp joins them into one
// line, and appends those of a trailer.
func cookies(sent, now []string, trailed bool) []string {
	if len(now) == 0 {
		return nil
	}
	var parsed fasthttp.RequestHeader
	for _, line := range sent {
		parsed.Add(fasthttp.HeaderCookie, line)
	}
	made := string(parsed.Peek(fasthttp.HeaderCookie))
	switch {
	case made != "" && (now[0] == made || trailed && strings.HasPrefix(now[0], made+"; ")):
		if len(sent) > 1 {
			return sent
		}
		return []string{made}
	case trailed:
		return nil
	}
	return now
}

// inNoTrailer reports whether fasthttp ignores a field of this name in trailers.
func inNoTrailer(name string) bool {
	return errors.Is(new(fasthttp.RequestHeader).AddTrailer(name), fasthttp.ErrBadTrailer)
}

// shuffles reports whether fasthttp may change the order of a field's lines when another
// field is removed from the header, as v1.69 does.
var shuffles = func() bool {
	var h fasthttp.RequestHeader
	h.Add("A", "")
	h.Add("B", "1")
	h.Add("B", "2")
	h.Del("A")
	return string(h.Peek("B")) != "1"
}()

// asSent returns the lines of a field: first those that were sent, in their order, and
// then the others.
func asSent(sent, now []string) []string {
	first, rest := make([]string, 0, len(now)), slices.Clone(now)
	for _, line := range sent {
		if i := slices.Index(rest, line); i >= 0 {
			first, rest = append(first, line), slices.Delete(rest, i, i+1)
		}
	}
	return append(first, rest...)
}

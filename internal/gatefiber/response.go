package gatefiber

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
)

// oneLine replaces line breaks in a value, because fasthttp would write them as they are.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

// Apply puts fields on a response. It leaves out those whose name is not valid, as
// net/http does. It does not use fasthttp's Set, which replaces only the first of several
// lines, and no Set-Cookie at all.
func Apply(h *fasthttp.ResponseHeader, fields []gate.Field) {
	for _, f := range fields {
		if strings.ContainsAny(f.Name, "\r\n\t :") {
			continue
		}
		if !f.Add {
			remove(h, f.Name)
		}
		h.Add(f.Name, oneLine.Replace(f.Value))
	}
}

// remove removes a field and keeps the lines of the others in their order.
func remove(h *fasthttp.ResponseHeader, name string) {
	if !shuffles || len(h.Peek(name)) == 0 {
		h.Del(name)
		return
	}
	before := all(h.VisitAll)
	h.Del(name)
	again := http.Header{}
	for other, lines := range before {
		if len(lines) > 1 && other != fasthttp.HeaderSetCookie && len(h.Peek(other)) > 0 {
			again[other] = lines
			h.Del(other)
		}
	}
	for other, lines := range again {
		for _, line := range lines {
			h.Add(other, line)
		}
	}
}

// refusedKey is the key, in a request's locals, of the reply with which a gate refused
// the request.
type refusedKey struct{}

// Send writes a reply as it is. No Content-Type is added, and the framing follows from
// the body, whatever the reply's Header says. Gates outside are told whether the reply is
// a refusal.
func Send(c *fasthttp.RequestCtx, reply *gate.Reply) {
	response, sent := &c.Response, reply.Sent()
	Apply(&response.Header, sent.Header)
	response.Header.Del(fasthttp.HeaderContentLength)
	response.Header.SetNoDefaultContentType(true)
	response.SetStatusCode(sent.Status)
	response.SetBody(sent.Body)
	if sent.Refused {
		c.SetUserValue(refusedKey{}, sent)
	}
	if c.Request.IsBodyStream() {
		// Otherwise fasthttp would read the rest of this body as the next request.
		response.SetConnectionClose()
	}
}

// Admit notes that a gate let the request through. A handler outside may have sent
// several requests of its own through the application, and an earlier one may have been
// refused.
func Admit(c *fasthttp.RequestCtx) {
	if c.UserValue(refusedKey{}) != nil {
		c.SetUserValue(refusedKey{}, nil)
	}
}

// Captured returns what the client will see of the response. It returns nil if the
// handler has given up with TimeoutError, because the handler may have left work that
// goes on.
func Captured(c *fasthttp.RequestCtx, capture int64) *gate.Reply {
	switch {
	case c.LastTimeoutErrorResponse() != nil:
		return nil
	case c.Hijacked():
		return &gate.Reply{Partial: true}
	}
	response := &c.Response
	reply := &gate.Reply{Status: response.StatusCode(), Header: fields(response)}
	refusal, ok := c.UserValue(refusedKey{}).(gate.Reply)
	reply.Refused = ok && carries(response, refusal)
	switch {
	case response.IsBodyStream():
		reply.Partial = true
	case c.IsHead(), !gate.BodyAllowed(reply.Status):
	default:
		body := response.Body()
		wasStream := len(body) == 0 && response.Header.ContentLength() != 0 // c.End of Fiber v3 has sent it
		reply.Partial = int64(len(body)) > capture || wasStream
		reply.Body = bytes.Clone(body[:min(int64(len(body)), capture)])
	}
	return reply
}

// carries reports whether a response is still the refusal, perhaps compressed, and not an
// answer with which a handler has replaced it.
func carries(response *fasthttp.Response, refusal gate.Reply) bool {
	if response.StatusCode() != refusal.Status || response.IsBodyStream() {
		return false
	}
	if bytes.Equal(response.Body(), refusal.Body) {
		return true
	}
	plain, err := response.BodyUncompressed()
	return err == nil && bytes.Equal(plain, refusal.Body)
}

// fields lists the header of a response. It includes the Content-Type that fasthttp adds
// by itself only if that is sent: with a body.
func fields(response *fasthttp.Response) []gate.Field {
	var sent fasthttp.ResponseHeader
	response.Header.CopyTo(&sent)
	if !response.IsBodyStream() && len(response.Body()) == 0 {
		sent.SetNoDefaultContentType(true)
	}
	header := http.Header{}
	sent.VisitAll(func(name, value []byte) { header.Add(string(name), string(value)) })
	return adapter.Fields(header)
}

package fiberlimit

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatehttp"
)

// fasthttp writes what Add is given as it is, line breaks too.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

// apply puts fields on a response. Set of fasthttp replaces only the first of
// several lines, and no Set-Cookie at all.
func apply(h *fasthttp.ResponseHeader, fields []gate.Field) {
	for _, f := range fields {
		name := oneLine.Replace(f.Name)
		if !f.Add {
			h.Del(name)
		}
		h.Add(name, oneLine.Replace(f.Value))
	}
}

// send writes a reply as it is: no Content-Type is added, and the framing is
// the reply's own, whatever its Header says.
func send(c *fiber.Ctx, reply *gate.Reply) {
	response := c.Response()
	response.ResetBody()
	apply(&response.Header, reply.Header)
	response.Header.Del(fiber.HeaderContentLength)
	response.Header.SetNoDefaultContentType(true)
	status := gatehttp.Status(reply.Status)
	response.SetStatusCode(status)
	if gatehttp.BodyAllowed(status) {
		response.SetBody(reply.Body)
	}
	if c.Request().IsBodyStream() {
		// fasthttp would read the rest of this body as the next request.
		response.SetConnectionClose()
	}
}

// captured is what the client will see of the response.
func captured(c *fiber.Ctx, capture int64) *gate.Reply {
	response := c.Response()
	reply := &gate.Reply{Status: response.StatusCode(), Header: fields(response)}
	switch {
	case c.Context().Hijacked(), response.IsBodyStream():
		reply.Partial = true
	case c.Context().IsHead(), !gatehttp.BodyAllowed(reply.Status):
	default:
		body := response.Body()
		reply.Partial = int64(len(body)) > capture
		reply.Body = bytes.Clone(body[:min(int64(len(body)), capture)])
	}
	return reply
}

// fields lists the header of a response. The Content-Type that fasthttp adds by
// itself is among them only where it is sent: with a body.
func fields(response *fasthttp.Response) []gate.Field {
	header := http.Header{}
	response.Header.VisitAll(func(name, value []byte) { header.Add(string(name), string(value)) })
	if !response.IsBodyStream() && len(response.Body()) == 0 && !typed(&response.Header) {
		header.Del(fiber.HeaderContentType)
	}
	return gatehttp.Fields(header)
}

// typed says that the Content-Type was set, and is not fasthttp's default.
func typed(h *fasthttp.ResponseHeader) bool {
	if len(h.ContentType()) == 0 {
		return false
	}
	h.SetNoDefaultContentType(true)
	set := len(h.ContentType()) > 0
	if !set {
		h.SetNoDefaultContentType(false)
	}
	return set
}

package hertzlimit

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/protocol"
	"github.com/cloudwego/hertz/pkg/protocol/consts"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
)

// oneLine replaces line breaks in a value, as Hertz does when it sends them.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

// apply puts fields on a response. It leaves out those whose name is not valid: Hertz does
// not send them.
func apply(h *protocol.ResponseHeader, fields []gate.Field) {
	for _, f := range fields {
		if strings.ContainsAny(f.Name, "\r\n\t :") {
			continue
		}
		if !f.Add {
			h.Del(f.Name)
		}
		h.Add(f.Name, oneLine.Replace(f.Value))
	}
}

// refused is the key, in a request's Keys, of the reply with which a gate refused the
// request.
const refused = "github.com/neap-go/neap/hertzlimit: refused"

// send writes a reply as it is. No Content-Type is added, and the framing follows from
// the body, whatever the reply's Header says. Gates outside are told whether the reply is
// a refusal.
func send(c *app.RequestContext, reply *gate.Reply) {
	response, sent := &c.Response, reply.Sent()
	apply(&response.Header, sent.Header)
	response.Header.Del(consts.HeaderContentLength)
	response.Header.SetNoDefaultContentType(true)
	response.SetStatusCode(sent.Status)
	response.SetBody(sent.Body)
	if sent.Refused {
		c.Set(refused, sent)
	}
}

// admit notes that a gate let the request through. A handler outside may have sent several
// requests of its own through the engine, and an earlier one may have been refused.
func admit(c *app.RequestContext) {
	if _, was := c.Get(refused); was {
		c.Set(refused, nil)
	}
}

// bare are the statuses to which Hertz adds a body, if there is none, when the handlers for
// a request without a route have returned.
var bare = []int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed}

// captured returns what the client will see of the response. It returns nil if Hertz or
// middleware outside has yet to write that. errs is how many errors the request had before
// the handler.
func captured(c *app.RequestContext, capture int64, errs int) *gate.Reply {
	response := &c.Response
	goesOn := c.Hijacked() || response.IsBodyStream() || response.GetHijackWriter() != nil
	status := response.StatusCode()
	switch empty := !goesOn && len(response.BodyBytes()) == 0; {
	case empty && c.FullPath() == "" && slices.Contains(bare, status), empty && status == http.StatusOK && len(c.Errors) > errs:
		return nil
	}
	reply := &gate.Reply{Status: status, Header: fields(response)}
	refusal, ok := c.Value(refused).(gate.Reply)
	reply.Refused = ok && carries(response, refusal)
	switch {
	case goesOn:
		reply.Partial = true
	case c.IsHead(), !gate.BodyAllowed(status):
	default:
		body := response.BodyBytes()
		reply.Partial = int64(len(body)) > capture
		reply.Body = bytes.Clone(body[:min(int64(len(body)), capture)])
	}
	return reply
}

// carries reports whether a response is still the refusal, perhaps compressed, and not an
// answer with which a handler has replaced it.
func carries(response *protocol.Response, refusal gate.Reply) bool {
	if response.StatusCode() != refusal.Status || response.IsBodyStream() || response.GetHijackWriter() != nil {
		return false
	}
	if bytes.Equal(response.BodyBytes(), refusal.Body) {
		return true
	}
	plain, err := response.BodyGunzip()
	return err == nil && bytes.Equal(plain, refusal.Body)
}

// fields lists the header of a response. It includes the Content-Type that Hertz adds by
// itself only if that is sent: with a body.
func fields(response *protocol.Response) []gate.Field {
	var sent protocol.ResponseHeader
	response.Header.CopyTo(&sent)
	if !response.IsBodyStream() && response.GetHijackWriter() == nil && len(response.BodyBytes()) == 0 && sent.ContentLength() == 0 {
		sent.SetNoDefaultContentType(true)
	}
	all := http.Header{}
	sent.VisitAll(func(name, value []byte) { all.Add(string(name), string(value)) })
	return adapter.Fields(all)
}

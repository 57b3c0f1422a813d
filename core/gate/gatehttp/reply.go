package gatehttp

import (
	"net/http"
	"strconv"

	"github.com/neap-go/neap/core/gate"
)

// WriteReply sends a reply as it is: no Content-Type is guessed, and the
// framing is the reply's own, whatever its Header says. HEAD gets the fields of
// GET without the body.
func WriteReply(w http.ResponseWriter, method string, reply *gate.Reply) {
	h := w.Header()
	sent := reply.Sent()
	Apply(h, sent.Header)
	if _, ok := h["Content-Type"]; !ok {
		h["Content-Type"] = nil
	}
	h.Del("Transfer-Encoding")
	h.Del("Content-Length")
	if !gate.BodyAllowed(sent.Status) {
		w.WriteHeader(sent.Status)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(sent.Body)))
	w.WriteHeader(sent.Status)
	if method != http.MethodHead {
		_, _ = w.Write(sent.Body)
	}
}

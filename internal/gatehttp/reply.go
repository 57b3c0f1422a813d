package gatehttp

import (
	"net/http"
	"strconv"

	"github.com/neap-go/neap/core/gate"
)

// refused names the field that marks a response as a refusal with this status,
// for the recorders outside. The field has no line, so no server sends it. It
// reaches the recorders through any middleware that wraps the writer in between,
// because all writers of one response share its header.
func refused(status int) string { return refusedPrefix + strconv.Itoa(status) }

const refusedPrefix = "Neap-Refused-"

// WriteReply sends a reply as it is: no Content-Type is guessed, and the
// framing is the reply's own, whatever its Header says. HEAD gets the fields of
// GET without the body. A [Recorder] outside is told whether it is a refusal.
func WriteReply(w http.ResponseWriter, method string, reply *gate.Reply) {
	h := w.Header()
	sent := reply.Sent()
	Apply(h, sent.Header)
	if _, ok := h["Content-Type"]; !ok {
		h["Content-Type"] = nil
	}
	h.Del("Transfer-Encoding")
	h.Del("Content-Length")
	if reply.Refused {
		h[refused(sent.Status)] = nil
	}
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

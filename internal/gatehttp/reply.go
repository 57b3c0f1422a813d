package gatehttp

import (
	"net/http"
	"strconv"

	"github.com/neap-go/neap/core/gate"
)

// refused names the field that marks a response as a refusal with this status, for the
// recorders outside. The field has no line, so no server sends it. All writers of one
// response share its header, so the mark reaches the recorders through any middleware
// that wraps the writer in between.
func refused(status int) string { return refusedPrefix + strconv.Itoa(status) }

const refusedPrefix = "Neap-Refused-"

// MarkRefused tells a [Recorder] outside that the response with this header and status is a
// refusal, if the framework writes it. [WriteReply] does so by itself.
func MarkRefused(h http.Header, status int) { h[refused(status)] = nil }

// WriteReply sends a reply as it is. No Content-Type is guessed, and the framing follows
// from the body, whatever the reply's Header says. HEAD gets the fields of GET without
// the body. A [Recorder] outside is told whether the reply is a refusal.
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
		MarkRefused(h, sent.Status)
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

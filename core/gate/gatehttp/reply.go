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
	Apply(h, reply.Header)
	if _, ok := h["Content-Type"]; !ok {
		h["Content-Type"] = nil
	}
	h.Del("Transfer-Encoding")
	h.Del("Content-Length")
	status := Status(reply.Status)
	if !BodyAllowed(status) {
		w.WriteHeader(status)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(reply.Body)))
	w.WriteHeader(status)
	if method != http.MethodHead {
		_, _ = w.Write(reply.Body)
	}
}

// Status is the status line's number for a reply's Status: 200 for zero, and
// 500 for one that cannot end a response.
func Status(status int) int {
	switch {
	case status == 0:
		return http.StatusOK
	case status < 200 || status > 999:
		return http.StatusInternalServerError
	}
	return status
}

// BodyAllowed says whether a response with this status has a body (RFC 9110
// section 6.4.1).
func BodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

package gate

import (
	"slices"
	"strings"
)

// Reply is a response: one to send, or one that was seen.
type Reply struct {
	// Status of a reply to send may be 0, which is 200; one below 200 or above
	// 999, which cannot end a response, is sent as 500. In a captured reply it
	// is 0 when the handler took the connection over before a status was sent.
	Status int
	// Header of a reply to send needs no framing: Content-Length and
	// Transfer-Encoding are ignored, and follow from Body.
	Header []Field
	// Body is not sent with a status that has none, nor to HEAD.
	Body []byte
	// Partial says of a captured reply that Body is not all of it: longer
	// than Capture, flushed, streamed or hijacked.
	Partial bool
	// Refused says that a gate refuses the request by this reply, so that the
	// handler does not run. The gates of this package say so of each refusal; a
	// gate of your own may. In a captured reply it says that a gate further in
	// answered with such a reply.
	Refused bool
}

// Sent is the reply as a client gets it: with the status, the header and the
// body that adapters make of it.
func (r Reply) Sent() Reply {
	switch {
	case r.Status == 0:
		r.Status = 200
	case r.Status < 200 || r.Status > 999:
		r.Status = 500
	}
	if slices.ContainsFunc(r.Header, isFraming) {
		r.Header = slices.DeleteFunc(slices.Clone(r.Header), isFraming)
	}
	if !BodyAllowed(r.Status) {
		r.Body = nil
	}
	return r
}

func isFraming(f Field) bool {
	return strings.EqualFold(f.Name, "Content-Length") || strings.EqualFold(f.Name, "Transfer-Encoding")
}

// BodyAllowed says whether a response with this status has a body (RFC 9110
// section 6.4.1).
func BodyAllowed(status int) bool {
	return status >= 200 && status != 204 && status != 304
}

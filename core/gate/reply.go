package gate

import (
	"slices"
	"strings"
)

// Reply is a response: one to send, or one that was captured.
type Reply struct {
	// Status of a reply to send may be 0, which means 200. A status below 200 or above
	// 999 cannot end a response and is sent as 500. In a captured reply Status is 0 if
	// the handler took the connection over before a status was sent.
	Status int
	// Header of a reply to send needs no framing: Content-Length and Transfer-Encoding
	// are ignored, and follow from Body.
	Header []Field
	// Body is not sent with a status that allows none, nor in reply to HEAD.
	Body []byte
	// Partial reports that Body of a captured reply is not the whole body: it was longer
	// than Capture, flushed, streamed or hijacked.
	Partial bool
	// Refused reports that a gate refused the request with this reply, so the handler
	// does not run. The gates of this package set it for each refusal; a gate of your own
	// may set it. In a captured reply it means that a gate further in answered with such
	// a reply.
	Refused bool
}

// Sent returns the reply as a client gets it: with the status, the header and the body
// that adapters send for it.
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

// BodyAllowed reports whether a response with this status may have a body (RFC 9110
// section 6.4.1).
func BodyAllowed(status int) bool {
	return status >= 200 && status != 204 && status != 304
}

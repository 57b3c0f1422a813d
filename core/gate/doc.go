// Package gate decides what HTTP middleware does and says, whatever framework
// carries the request: whether it may run, with which header fields, and what
// the answer is when it may not.
//
// A [Gate] is made once, at wiring, and mounted with the Middleware of an
// adapter (nethttp, ginlimit, echolimit, echo5limit, fiberlimit, fiber3limit):
//
//	perIP := gate.RateLimit(limiter, gate.ByIP(nil), nil)
//
// A [Key] says whom a decision is for. The keys of this package tag what they
// return with their kind (ip=…, header:x-api-key=…), so that a caller cannot
// spend another's permits by sending the other's address as an API key. They
// never fall back to a shared key: what is missing, doubled or malformed is
// answered with a status of 400 to 499 that says so.
//
// Constructors panic at wiring on a nil or impossible argument, as
// http.ServeMux.Handle does, and never on what a request brings.
//
// # What a client may learn
//
// A refusal is application/problem+json (RFC 9457) unless a Render says
// otherwise. No key, no error text and no name of a server reaches the client.
// Faults of the server's own are answered with a bare 500 or 503. Only the OnError
// hook sees the reason, so set one.
//
// # Where the guarantees end
//
// A gate knows of a request what its [Request] tells it. The peer of the
// socket cannot be forged; a header can, unless something in front of the
// server removes or checks it. [ByIP] believes X-Forwarded-For only from
// proxies that are listed. A key made from a header, a parameter or a body is
// as good as the check behind it: a caller who may send any API key has as
// many limits as there are API keys.
package gate

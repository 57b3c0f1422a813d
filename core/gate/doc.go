// Package gate decides whether an HTTP request may run, which header fields its response
// gets, and what the answer is if it may not run. It does so for any framework.
//
// Make a [Gate] once, at wiring. Mount it with the Middleware of an adapter (nethttp,
// ginlimit, echolimit, echo5limit, fiberlimit, fiber3limit, hertzlimit, kratoslimit) or
// an interceptor of grpclimit:
//
//	limiter, err := limit.New(rdb, "detail", []limit.Policy{
//		limit.FixedWindow{Name: "hourly", Limit: 100, Window: time.Hour},
//	}, nil)
//	if err != nil {
//		return err
//	}
//	perIP := gate.RateLimit(limiter, gate.ByIP(nil), nil)
//	mux.Handle("GET /detail", nethttp.Middleware(perIP)(handler))
//
// # Gates
//
//   - [RateLimit] limits how many requests a subject may make. [RateLimits] asks several
//     rate limits, and charges all of them or none.
//   - [Concurrency] limits how many requests of a subject run at once.
//   - [Exclusive] lets one request of a subject run at a time.
//   - [Idempotent] runs requests with the same Idempotency-Key once.
//   - [Reserve] reserves units of a stock while a request runs.
//   - [Block] refuses the subjects of a list.
//   - [Chain] makes one gate of several.
//
// # Keys
//
// A [Key] says which subject a decision is for. The keys of this package tag their values
// with their kind (ip=…, header:x-api-key=…) or a name of yours ([ByValue]). So a caller
// cannot spend another caller's permits by sending that caller's address as an API key.
// Keys never fall back to a shared key: if the value is missing, doubled or malformed,
// the request gets a status of 400 to 499 that says so.
//
// # Panics
//
// Constructors panic at wiring on a nil or impossible argument, as http.ServeMux.Handle
// does. They never panic because of what a request brings.
//
// # What a client may learn
//
// A refusal is application/problem+json (RFC 9457) unless a Render says otherwise. No
// key, no error text and no name of a server reaches the client. Faults of the server are
// answered with a bare 500 or 503. Only the OnError hook sees the reason, so set one. A
// gate without the hook logs its first 500 to slog.Default, without the reason. If a key
// lacks the route or its parameter, the line has the remedy.
//
// # Where the guarantees end
//
// A gate knows about a request only what its [Request] tells it. A client cannot forge
// the peer of the socket. It can forge a header, unless something in front of the server
// removes or checks it. [ByIP] believes X-Forwarded-For only from proxies that you
// list or count. A key made from a header, a parameter or a body is as good as the check behind
// it: a caller that may send any API key has as many limits as there are API keys.
package gate

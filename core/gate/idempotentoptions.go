package gate

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/neap-go/neap/core/idempotency"
)

const defaultMaxResponse = 256 << 10

// IdempotentOptions are the options of [Idempotent]. Their functions must be safe for
// concurrent use; their panics propagate to the request.
type IdempotentOptions struct {
	// Skip lets a request pass unguarded.
	Skip func(Request) bool
	// Methods are the methods that are guarded; requests with others pass. None means
	// POST and PATCH, which are not idempotent by themselves (RFC 9110 section 9.2.2). If
	// Key is set, none means all methods.
	Methods []string
	// Key replaces the header field Idempotency-Key, for example with a parameter or a
	// field of the body.
	Key Key
	// Optional lets a request without a key pass unguarded. Otherwise such a request is
	// refused with a 400.
	Optional bool
	// Wait is how long a request waits for another one with its key, up to 24 h, to get
	// the same answer. With 0 it is refused immediately.
	Wait time.Duration

	// Fields decide, together with method and path, whether two requests with one key are
	// the same. They replace the query and the body. Use them if repetitions differ, for
	// example in a timestamp: [ByJSON] of the order's number and of the amount. A request
	// that has none of them is known by method and path alone.
	Fields []Key
	// MaxBody is the longest request body that is read, in bytes. A longer one is refused
	// with a 413. Zero means 1 MiB. With Fields their own limits hold instead.
	MaxBody int64

	// MaxResponse is the longest response body that is stored, in bytes. A longer one is
	// sent, but not sent again later. Zero means 256 KiB.
	MaxResponse int64
	// Headers are stored with a response, in addition to those that [StoredReply] names.
	Headers []string
	// Replay reports whether an answer is stored and sent to later requests. With nil every
	// answer from 200 to 499 is, except 401, 403, 408, 425 and 429. If an answer is not
	// kept, its status decides:
	//
	//   - 200 to 399: the request was done, and later ones get a 409 that says so.
	//   - 400 to 499: nothing was done, and the next request runs.
	//   - Anything else: the outcome is unknown, and the guard's [idempotency.Policy]
	//     decides.
	Replay func(*Reply) bool

	// Fail says what to do while Redis cannot answer. The zero value refuses the request with
	// a 503. [idempotency.RunUnguarded] runs the handler, for a route that recognizes a
	// repeated request by itself, such as by a unique key in its database:
	// [idempotency.Guard.WithFail] says what can then happen twice. The handler finds the
	// claim as always, and Claim.Unguarded returns why Redis did not answer.
	Fail idempotency.FailMode

	// Render makes the answer to a request that may not run, as Render of
	// [RateLimitOptions] does.
	Render func(Denial) Reply
	// OnError is told of each request that is answered with a 500 or 503, as OnError of
	// [RateLimitOptions] is. It is also told of
	//
	//   - a request that runs unguarded, before the handler,
	//   - a request that is in doubt (idempotency.ErrInDoubt),
	//   - a result that cannot be read (idempotency.ErrUnreadable),
	//   - after the handler: a claim that was lost to another request
	//     (idempotency.ErrLost), a result that Redis did not confirm, and a request that
	//     is in doubt from then on.
	//
	// After the handler the Request has only its context, method, host, path, query,
	// route and peer. In the context idempotency.FromContext finds the claim with its
	// Key.
	OnError func(Request, error)
}

func mustSize(field string, n, otherwise int64) int64 {
	switch {
	case n == 0:
		return otherwise
	case n < 0:
		panic("gate.Idempotent: IdempotentOptions." + field + " is negative; 0 is " + strconv.FormatInt(otherwise, 10))
	}
	return n
}

// mustMethods panics on what cannot be a method of a request, because it would guard
// nothing.
func mustMethods(methods []string) []string {
	for i, method := range methods {
		if !isToken(method) || method != strings.ToUpper(method) {
			panic("gate.Idempotent: IdempotentOptions.Methods[" + strconv.Itoa(i) + "] is " + strconv.Quote(method) + "; write it like POST")
		}
	}
	return slices.Clone(methods)
}

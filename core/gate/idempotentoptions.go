package gate

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// DefaultMaxResponse is how many bytes of a response are stored unless told
// otherwise.
const DefaultMaxResponse = 256 << 10

// IdempotentOptions are the options of [Idempotent]. Their functions must be safe for
// concurrent use; their panics propagate to the request.
type IdempotentOptions struct {
	// Skip lets a request pass unguarded.
	Skip func(Request) bool
	// Methods are those that are guarded; others pass. None is POST and PATCH,
	// which by themselves may not be repeated (RFC 9110 section 9.2.2), and with
	// a Key of one's own all.
	Methods []string
	// Key takes the place of the header field Idempotency-Key: a parameter, a
	// field of the body.
	Key Key
	// Optional lets a request pass unguarded that has no key. Otherwise it is
	// refused with a 400.
	Optional bool
	// Wait is how long a request waits for another one with its key, up to 24 h, to
	// get the same answer. 0 refuses it immediately.
	Wait time.Duration

	// Fields are what makes two requests with one key the same, beside method
	// and path, in the place of query and body: [ByJSON] of the order's number
	// and the amount, say, where repetitions differ in a timestamp. A request
	// that has none of them is told by method and path alone.
	Fields []Key
	// MaxBody is the longest request body that is read, in bytes; a longer one
	// is refused with a 413. Zero is [DefaultMaxBody]. With Fields it is their
	// own that counts.
	MaxBody int64

	// MaxResponse is the longest response body that is stored, in bytes; a
	// longer one is sent, but not again. Zero is [DefaultMaxResponse].
	MaxResponse int64
	// Headers are stored with a response beside those that [StoredReply] names.
	Headers []string
	// Keep says which answer is given to those that come later; nil is every one
	// from 200 to 499 but 401, 403, 408, 425 and 429. One that is not kept is
	// taken by its status: of 200 to 399 it was done all the same, and later ones
	// are told so; of 400 to 499 nothing was done, and the next one runs; of
	// anything else nobody knows, and idempotency.Options.InDoubt decides.
	Keep func(*Reply) bool

	// Render makes the answer to a request that may not run, as that of
	// [RateLimitOptions] does.
	Render func(Denial) Reply
	// OnError hears of what is answered with a 500 or 503, as that of
	// [RateLimitOptions] does. It also hears of a request that is in doubt
	// (idempotency.ErrInDoubt); of a result that cannot be read
	// (idempotency.ErrUnreadable); and, when the handler has run, of a claim that
	// was lost to another (idempotency.ErrLost), of a result that Redis did not
	// confirm, and of a request that is in doubt from then on. After the handler
	// the Request has no more than its context, in which idempotency.FromContext
	// finds the claim with its Key, and its method, host, path, query, route and
	// peer.
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

// mustMethods panics on what no request has as its method: nothing would be
// guarded by it.
func mustMethods(methods []string) []string {
	for i, method := range methods {
		if !isToken(method) || method != strings.ToUpper(method) {
			panic("gate.Idempotent: IdempotentOptions.Methods[" + strconv.Itoa(i) + "] is " + strconv.Quote(method) + "; write it like POST")
		}
	}
	return slices.Clone(methods)
}

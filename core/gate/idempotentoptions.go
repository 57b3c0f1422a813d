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
	// Wait is how long a request waits for another one with its key, to get the same
	// answer: a millisecond to 24 h. With 0 it is refused immediately.
	Wait time.Duration

	// Fields decide, together with method and path, whether two requests with one key are
	// the same. They replace the query and the body. Use them if repetitions differ, for
	// example in a timestamp: [ByJSON] of the order's number and of the amount. A request
	// that has none of them is known by method and path alone.
	Fields []Key
	// Fingerprint says when two bodies are the same, without Fields. The zero value is
	// [AsSent].
	Fingerprint Fingerprint
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
	//     (idempotency.ErrLost), a request that is in doubt from then on, and a
	//     conclusion that Redis did not confirm (a *script.Error). That goes on in the
	//     background. If it ends there in a loss or a doubt, or is given up
	//     (idempotency.ErrDropped), OnError is told once more, unless the handler
	//     concluded by itself.
	//
	// After the handler the Request has only its context, method, host, path, query,
	// route and peer. In the context idempotency.FromContext finds the claim with its
	// Key.
	OnError func(Request, error)
}

// Fingerprint says when the bodies of two requests with one idempotency key are the same.
type Fingerprint int

const (
	// AsSent compares bodies byte by byte. Multipart forms may differ in their boundary.
	AsSent Fingerprint = iota
	// CanonicalJSON compares JSON by its canonical form (RFC 8785). So a repetition may
	// have other spaces, another order of members, and other spellings of the same strings
	// and numbers: "\u0061" is "a", and 1.0 is 1. Names that differ in case are different.
	//
	// A body is JSON if the Content-Type is application/json or ends in +json. Any other
	// body, and an empty one, is compared as sent: it has no members to reorder, and a
	// route may take forms as well.
	//
	// A body of such a type is refused with a 400 if it has no canonical form, because two
	// readers might read it in two ways:
	//
	//   - It is not JSON, not UTF-8, or has half of a surrogate pair.
	//   - An object has two members of one name.
	//   - A number is no double (IEEE 754): it is too large, has over 17 significant
	//     digits, or is an integer that readers of doubles round, such as 2^53 + 1.
	//     Clients send such a number as a string.
	//   - Arrays and objects are nested more than 128 deep.
	//
	// The canonical form is up to six times as long as the body. While the gate decides,
	// it is in memory twice. If you change from one Fingerprint to another, a repetition
	// of a JSON request that was recorded before is refused with a 422 until its record
	// is over.
	CanonicalJSON

	fingerprintsEnd
)

// mustPrint returns the function that makes a request's fingerprint.
func (o *IdempotentOptions) mustPrint() func(Request) (string, error) {
	switch {
	case o.Fingerprint < 0 || o.Fingerprint >= fingerprintsEnd:
		panic("gate.Idempotent: IdempotentOptions.Fingerprint is " + strconv.Itoa(int(o.Fingerprint)) + "; use AsSent or CanonicalJSON")
	case len(o.Fields) > 0 && o.Fingerprint != AsSent:
		panic("gate.Idempotent: IdempotentOptions.Fields replace the body, so Fingerprint would have no effect; leave out one of them")
	}
	if i := slices.IndexFunc(o.Fields, func(k Key) bool { return k == nil }); i >= 0 {
		panic("gate.Idempotent: IdempotentOptions.Fields[" + strconv.Itoa(i) + "] is nil; make one with ByJSON, ByForm and their like")
	}
	if fields := slices.Clone(o.Fields); len(fields) > 0 {
		return func(r Request) (string, error) { return fingerprintOf(r, fields) }
	}
	limit, how := mustSize("MaxBody", o.MaxBody, defaultMaxBody), o.Fingerprint
	return func(r Request) (string, error) { return fingerprint(r, limit, how) }
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

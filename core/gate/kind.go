package gate

import "time"

// Kind is the reason why a gate does not let a request run. The status, the problem type
// and the title of a [Denial] follow from it, unless a [Key] or another function of yours
// has refused the request with words of its own.
type Kind uint8

const (
	// KindRefused is the kind of a refusal that [Refuse] made, of [ErrMissing], of a body
	// that a key could not read, and of a cost that can never be granted. Its status is 400
	// to 499.
	KindRefused Kind = iota
	// KindFault means that the wiring is wrong, or that a function of the gate's options
	// failed: 500.
	KindFault
	// KindUnavailable means that Redis could not answer: 503.
	KindUnavailable

	// KindLimited is the denial of [RateLimit] and [RateLimits]: 429.
	KindLimited
	// KindFull is the denial of [Concurrency]: 429.
	KindFull
	// KindBlocked is the denial of [Block]: 403.
	KindBlocked
	// KindHeld is the denial of [Exclusive]: 409.
	KindHeld

	// KindKeyMissing is the denial of [Idempotent] if there is no key: 400.
	KindKeyMissing
	// KindKeyInvalid is the denial of [Idempotent] if the key is broken: 400.
	KindKeyInvalid
	// KindKeyReused is the denial of [Idempotent] if the key was used for another request: 422.
	KindKeyReused
	// KindInFlight is the denial of [Idempotent] while a request with the key runs: 409.
	KindInFlight
	// KindInDoubt is the denial of [Idempotent] if it is unknown what became of the first
	// request: 409.
	KindInDoubt
	// KindDone is the denial of [Idempotent] if the first request's answer is gone: 409.
	KindDone
	// KindNotBegun is the denial of [Idempotent] if Redis could not answer: 503.
	KindNotBegun

	// KindSoldOut is the denial of [Reserve] if there are not as many left: 409.
	KindSoldOut
	// KindYours is the denial of [Reserve] if the buyer has the item: 409.
	KindYours
	// KindUnknownItem is the denial of [Reserve] if there is no such item: 404.
	KindUnknownItem
	// KindQuantity is the denial of [Reserve] if the id stands for another quantity: 422.
	KindQuantity
	// KindCalls is the denial of [Reserve] if eight requests have the reservation: 409.
	KindCalls
	// KindNotReserved is the denial of [Reserve] if Redis could not answer: 503.
	KindNotReserved
)

// TypeIdempotency begins the problem types of [Idempotent]. It leads to the page that
// explains each of them.
const TypeIdempotency = "https://github.com/neap-go/neap/blob/main/docs/idempotency.md#"

// TypeStock begins the problem types of [Reserve]. It leads to the page that explains
// each of them.
const TypeStock = "https://github.com/neap-go/neap/blob/main/docs/stock.md#"

// typeQuota is the problem type of draft-ietf-httpapi-ratelimit-headers-11, section 5.1,
// and titleQuota is its title there.
const (
	typeQuota  = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	titleQuota = "Request cannot be satisfied as assigned quota has been exceeded"
)

// soon is when a client should try again if it is unknown when that will help: when the
// request that is in the way has ended, or when Redis is back.
const soon = time.Second

// kinds has what HTTP says of each kind. Only registered problem types and those of
// neap's own pages are there: none is registered about requests in flight or requests
// that exclude each other.
var kinds = [...]struct {
	status     int
	problem    string
	title      string
	retryAfter time.Duration
}{
	KindRefused:     {status: 400},
	KindFault:       {status: 500, title: "Internal Server Error"},
	KindUnavailable: {status: 503, title: "Service Unavailable", retryAfter: soon},

	KindLimited: {status: 429, problem: typeQuota, title: titleQuota},
	KindFull:    {status: 429, title: "Too many requests are in flight"},
	KindBlocked: {status: 403, title: "Forbidden"},
	KindHeld:    {status: 409, title: "Another request for the same thing is running", retryAfter: soon},

	KindKeyMissing: {status: 400, problem: TypeIdempotency + "key-missing"},
	KindKeyInvalid: {status: 400, problem: TypeIdempotency + "key-invalid"},
	KindKeyReused:  {status: 422, problem: TypeIdempotency + "key-reused", title: "The key was used for another request"},
	KindInFlight:   {status: 409, problem: TypeIdempotency + "in-flight", title: "A request with this key is running", retryAfter: soon},
	KindInDoubt:    {status: 409, problem: TypeIdempotency + "in-doubt", title: "It is unknown whether the request was done"},
	KindDone:       {status: 409, problem: TypeIdempotency + "already-done", title: "The request was done, but its answer is not available any more"},
	KindNotBegun:   {status: 503, problem: TypeIdempotency + "not-begun", title: "The request was not begun", retryAfter: soon},

	KindSoldOut:     {status: 409, problem: TypeStock + "sold-out", title: "There are not as many left"},
	KindYours:       {status: 409, problem: TypeStock + "already-yours", title: "The buyer has the item already"},
	KindUnknownItem: {status: 404, problem: TypeStock + "unknown-item", title: "There is no such item"},
	KindQuantity:    {status: 422, problem: TypeStock + "another-quantity", title: "The id stands for another quantity"},
	KindCalls:       {status: 409, problem: TypeStock + "too-many-calls", title: "Eight requests with this id have the item already", retryAfter: soon},
	KindNotReserved: {status: 503, problem: TypeStock + "not-reserved", title: "Nothing was reserved", retryAfter: soon},
}

// Kinds returns the kinds of denials with which a gate may refuse a request. known is false
// if this package did not make the gate. An adapter for another protocol than HTTP refuses
// gates whose denials it cannot answer, and those that are not known.
func Kinds(g Gate) (kinds []Kind, known bool) {
	if of, is := g.(interface{ kinds() ([]Kind, bool) }); is {
		return of.kinds()
	}
	return nil, false
}

func (*rateLimit) kinds() ([]Kind, bool)   { return kindsAnd(KindUnavailable, KindLimited) }
func (rateLimits) kinds() ([]Kind, bool)   { return kindsAnd(KindUnavailable, KindLimited) }
func (*concurrency) kinds() ([]Kind, bool) { return kindsAnd(KindUnavailable, KindFull) }
func (*block) kinds() ([]Kind, bool)       { return kindsAnd(KindBlocked) }
func (*exclusive) kinds() ([]Kind, bool)   { return kindsAnd(KindUnavailable, KindHeld) }

func (*idempotent) kinds() ([]Kind, bool) {
	return kindsAnd(KindKeyMissing, KindKeyInvalid, KindKeyReused, KindInFlight, KindInDoubt, KindDone, KindNotBegun)
}

func (*reserve) kinds() ([]Kind, bool) {
	return kindsAnd(KindSoldOut, KindYours, KindUnknownItem, KindQuantity, KindCalls, KindNotReserved)
}

// kindsAnd returns the kinds of a gate that has a key.
func kindsAnd(more ...Kind) (all []Kind, known bool) {
	return append([]Kind{KindRefused, KindFault}, more...), true
}

// complete adds what follows from the kind of a denial.
func (d *Denial) complete() {
	k := &kinds[d.Kind]
	if d.Status == 0 {
		d.Status = k.status
	}
	d.Type = k.problem
	if d.Title == "" {
		d.Title = k.title
	}
	if d.RetryAfter == 0 {
		d.RetryAfter = k.retryAfter
	}
}

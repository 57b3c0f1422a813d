package gate

import (
	"strconv"
	"time"

	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
)

// Headers chooses the header fields in which a rate limit reports its state to a client,
// in admitted and denied requests alike. Every number of seconds is rounded up. The zero
// value is [HeadersIETF].
type Headers uint8

const (
	// HeadersIETF sends RateLimit-Policy and RateLimit, as in
	// draft-ietf-httpapi-ratelimit-headers-11. RateLimit-Policy has every enforced
	// policy. RateLimit has the policy that binds. For each other unit
	// ([limit.PerRequest]) it also has the policy with the least left.
	//
	//	RateLimit-Policy: "burst";q=10;w=1
	//	RateLimit: "burst";r=9;t=1
	//
	//   - q is the quota: how much can be taken at once.
	//   - w is the time window: the seconds after which an exhausted policy has its whole
	//     quota again.
	//   - r is the available quota.
	//   - t is the effective window. A client that uses no more than r within t seconds
	//     is not denied by this policy. After t seconds there is more than r. t is never
	//     too short. It is longer than necessary by the rounding, and after a burst on a
	//     [limit.SlidingWindow].
	//   - qu is the unit, if q does not count requests.
	//
	//	RateLimit-Policy: "upload";q=65535;qu="content-bytes";w=10
	//	RateLimit-Policy: "inflight";q=2;qu="concurrent-requests"
	//
	// Requests in flight have neither w nor t, because it is unknown when one ends. Both
	// fields are lists: those of an outer and of an inner gate stand side by side.
	HeadersIETF Headers = iota
	// HeadersLegacy sends RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset for
	// the policy that binds, as drafts up to 06 had them. Their values are q, r and t of
	// HeadersIETF, without a unit. The fields of an inner gate replace those of an outer
	// one.
	HeadersLegacy
	// HeadersX sends X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset: the
	// legacy fields under their older names. Reset is a number of seconds from now, not a
	// Unix time.
	HeadersX
	// HeadersNone sends none of these fields. A 429 still has Retry-After.
	HeadersNone
	// HeadersAll is HeadersIETF, and RateLimit has what is left of every enforced policy.
	// The policy that binds comes first. So a client sees the month as well as the burst.
	//
	//	RateLimit: "burst";r=9;t=1, "monthly";r=4120;t=1209600
	HeadersAll
	// HeadersXEpoch is HeadersX with Reset as a Unix time: the second in which it is, by
	// the clock of this process, rounded up. Some clients expect it so, for example those
	// of GitHub's API.
	HeadersXEpoch

	headersEnd
)

// The names are in the form in which http.Header keeps them, so adapters need not convert
// them. Field names are case-insensitive (RFC 9110 section 5.1).
const (
	fieldPolicy       = "Ratelimit-Policy"
	fieldRateLimit    = "Ratelimit"
	fieldRetryAfter   = "Retry-After"
	fieldCacheControl = "Cache-Control"
	fieldContentType  = "Content-Type"
	fieldReplayed     = "Idempotent-Replayed"
)

// maxInteger is the largest Integer of a Structured Field (RFC 9651 section 3.3.1).
const maxInteger = 999_999_999_999_999

// fields formats d, and leaves room for spare more fields. All values are parts of one
// string, which saves allocations.
func (h Headers) fields(d *limit.Decision, spare int) []Field {
	if d.Policy == "" { // for example because store.FailOpen let the request through
		h = HeadersNone
	}
	switch h {
	case HeadersIETF, HeadersAll:
		return ietfFields(d, spare, h == HeadersAll)
	case HeadersLegacy:
		return legacyFields(d, spare, seconds, "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset")
	case HeadersX:
		return legacyFields(d, spare, seconds, "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset")
	case HeadersXEpoch:
		return legacyFields(d, spare, epoch, "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset")
	}
	return make([]Field, 0, spare)
}

func ietfFields(d *limit.Decision, spare int, every bool) []Field {
	var room [256]byte
	text := room[:0]
	var binding limit.State
	for s := range d.States() {
		if s.Shadow {
			continue
		}
		if len(text) > 0 {
			text = append(text, ", "...)
		}
		text = appendItem(text, s.Policy, ";q=", s.Limit)
		text = appendUnit(text, s.Unit)
		if s.Window > 0 { // a calendar month has no fixed length
			text = append(text, ";w="...)
			text = strconv.AppendInt(text, seconds(s.Window), 10)
		}
		if s.Policy == d.Policy {
			binding = s
		}
	}
	cut := len(text)
	text = appendLeft(text, &binding)
	for s := range d.States() {
		shown := every && !s.Shadow && s.Policy != binding.Policy
		if shown || s.Unit != binding.Unit && s.Policy == leastOf(s.Unit, d).Policy {
			text = append(text, ", "...)
			text = appendLeft(text, &s)
		}
	}
	all := string(text)
	return append(make([]Field, 0, 2+spare),
		Field{Name: fieldPolicy, Value: all[:cut], Add: true},
		Field{Name: fieldRateLimit, Value: all[cut:], Add: true})
}

// appendLeft writes what is left of a policy.
func appendLeft(text []byte, s *limit.State) []byte {
	text = appendItem(text, s.Policy, ";r=", s.Remaining)
	text = append(text, ";t="...)
	return strconv.AppendInt(text, seconds(s.NextAfter), 10)
}

// leastOf returns the enforced policy of this unit that has the least left, and the first
// one if several do.
func leastOf(unit string, d *limit.Decision) (least limit.State) {
	for s := range d.States() {
		if !s.Shadow && s.Unit == unit && (least.Policy == "" || s.Remaining < least.Remaining) {
			least = s
		}
	}
	return least
}

// appendItem quotes the name as Go does. A policy's name has only printable characters,
// and for these RFC 9651 section 4.1.6 asks for the same.
func appendItem(text []byte, policy, parameter string, n int64) []byte {
	text = strconv.AppendQuoteToASCII(text, policy)
	text = append(text, parameter...)
	return strconv.AppendInt(text, min(n, maxInteger), 10)
}

// appendUnit omits the default unit (section 3.1 of the draft).
func appendUnit(text []byte, unit string) []byte {
	if unit == "" {
		return text
	}
	text = append(text, ";qu="...)
	return strconv.AppendQuoteToASCII(text, unit)
}

// unitInFlight is the unit of a limit on requests in flight (section 3.1.2 of the draft).
const unitInFlight = "concurrent-requests"

// inFlight formats the decision of a limit on requests in flight.
func (h Headers) inFlight(s *inflight.Slot) []Field {
	if h == HeadersNone || s.Policy == "" {
		return nil
	}
	var room [128]byte
	text := appendUnit(appendItem(room[:0], s.Policy, ";q=", s.Limit), unitInFlight)
	cut := len(text)
	all := string(appendItem(text, s.Policy, ";r=", s.Remaining))
	return []Field{
		{Name: fieldPolicy, Value: all[:cut], Add: true},
		{Name: fieldRateLimit, Value: all[cut:], Add: true},
	}
}

func legacyFields(d *limit.Decision, spare int, when func(time.Duration) int64, total, remaining, reset string) []Field {
	var next time.Duration
	for s := range d.States() {
		if s.Policy == d.Policy { // no shadow policy has the name of an enforced one
			next = s.NextAfter
		}
	}
	var room [64]byte
	text := strconv.AppendInt(room[:0], d.Limit, 10)
	first := len(text)
	text = strconv.AppendInt(text, d.Remaining, 10)
	second := len(text)
	text = strconv.AppendInt(text, when(next), 10)
	all := string(text)
	return append(make([]Field, 0, 3+spare),
		Field{Name: total, Value: all[:first]},
		Field{Name: remaining, Value: all[first:second]},
		Field{Name: reset, Value: all[second:]})
}

// seconds rounds up, so that a client that waits for this long has waited long enough.
func seconds(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second > 0 {
		whole++
	}
	return max(0, whole)
}

// epoch returns the second in which the duration is over, since 1970.
func epoch(d time.Duration) int64 {
	at := time.Now().Add(d)
	return at.Unix() + seconds(time.Duration(at.Nanosecond()))
}

// secondsAtLeastOne is for Retry-After: with 0 seconds a client would retry immediately.
func secondsAtLeastOne(d time.Duration) int64 { return max(1, seconds(d)) }

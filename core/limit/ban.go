package limit

import (
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/keyspace"
)

// Ban says when a subject is banned because it was denied too often, and for how long.
// [WithBan] gives a policy a Ban.
//
// If the policy has denied a subject After times within Within, it bans the subject: it
// denies every request of the subject until the ban ends. Within begins with the first of
// those denials, as the window of a [FixedWindow] does. After a ban, denials are counted
// from zero.
//
// The first ban lasts as long as For. A ban that begins less than Max after the end of the
// last one is twice as long as the last one, up to Max. A ban that begins later is as long
// as For again.
//
// While a subject is banned, its policy's own limit applies too. So if the ban ends
// before the policy admits again, it changes nothing for a subject that waits; a subject
// that does not wait can cause the next ban. Make For at least as long as the policy's
// window. With an After of 1, the first denial bans.
//
// After is at least 1. Within and For are required. Within, For and Max are whole numbers
// of milliseconds. Max is at least For; zero means For: no ban is longer than another.
//
// Only denials by the policy itself are counted, whatever the limiter's other policies
// say. These are not counted:
//
//   - a request that a ban denies: it does not extend the ban, and is not counted for the
//     ban of another policy
//   - Peek, and requests of cost 0; while a ban lasts, they are denied too
//   - denials that a [Limiter.WaitFor] foresees in process; but a [Limiter.Wait] that
//     asks Redis again is counted each time
type Ban struct {
	After  int64
	Within time.Duration
	For    time.Duration
	Max    time.Duration
}

// WithBan returns a policy that bans subjects which it denies too often. If p has a Ban
// already, b replaces it.
//
// The policy counts in the same key as without a ban. For a subject that was denied there
// is a second key, of some 150 bytes. The numbers of the Ban are part of that second key,
// so a change of them lifts all bans.
//
// In the [State] of a banned subject, Banned is true, RetryAfter is the longer of the
// policy's and the ban's, and Remaining is 0. [Limiter.Ban] bans a subject, and
// [Limiter.Unban] lifts its bans. Reset does not lift them. The ban of a [Shadow] is
// reported and denies nothing. If a limiter has a Ban, Options.RememberDenials repeats
// only bans, because every other denial must be counted. A policy with a Ban cannot be
// [Prepaid].
//
// A denial stands even if it cannot be counted, for example because the memory of Redis
// is full.
//
// An outage lifts no ban that this process knows of: one that Redis has reported to this
// limiter, or to one that With made from the same one, and one that [Limiter.Ban] made
// there. The ban holds with [store.FailLocal] and with [store.FailOpen] until it ends, or until
// [Limiter.Unban] lifts it in this process. This process does not learn what other
// processes do about bans meanwhile. With FailLocal it also bans by its own denials. When
// Redis is back, Redis decides alone.
func WithBan(p Policy, b Ban) Policy {
	return with(p, func(t *terms) { t.banned, t.ban = true, b })
}

// key returns the Ban's part of a Redis key.
func (b *Ban) key() string {
	longest := b.Max
	if longest == 0 {
		longest = b.For
	}
	return fmt.Sprintf("ban-%d-%s-%s-%s", b.After, keyspace.Span(b.Within), keyspace.Span(b.For), keyspace.Span(longest))
}

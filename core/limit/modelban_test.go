package limit_test

import (
	"cmp"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// banState is what is known of a subject under a ban, in milliseconds.
type banState struct {
	ends, length  int64
	from, denials int64

	told bool // to a process, by Redis
}

// left returns how long the ban still lasts: no longer than it was, if the clock was set back.
// A nil banState has none.
func (b *banState) left(now int64) time.Duration {
	if b == nil {
		return 0
	}
	return time.Duration(max(min(b.ends-now/1000, b.length), 0)) * time.Millisecond
}

// count counts a denial, with which a ban may begin.
func (b *banState) count(rule limit.Ban, now int64) {
	ms := now / 1000
	if b.denials == 0 || ms-b.from >= rule.Within.Milliseconds() {
		b.from, b.denials = ms, 0
	}
	if b.denials++; b.denials < rule.After {
		return
	}
	longest := cmp.Or(rule.Max, rule.For).Milliseconds()
	length := rule.For.Milliseconds()
	if b.length > 0 && ms-b.ends < longest {
		length = min(2*b.length, longest)
	}
	*b = banState{ends: ms + length, length: length}
}

// ban bans by hand; with 0 it lifts all bans. It returns how long the longest ban still lasted.
func (m *model) ban(now int64, d time.Duration) (left time.Duration) {
	for _, p := range m.parts {
		if p.bans == nil {
			continue
		}
		left = max(left, p.bans.left(now))
		*p.bans = banState{}
		if ms := (d + time.Millisecond - 1).Milliseconds(); ms > 0 {
			*p.bans = banState{ends: now/1000 + ms, length: ms}
		}
	}
	return left
}

// holds puts the subject on hold; the later end counts.
func (m *model) holds(now int64, d time.Duration) {
	if ms := (d + time.Millisecond - 1).Milliseconds(); m.hold.left(now).Milliseconds() <= ms {
		*m.hold = banState{ends: now/1000 + ms, length: ms}
	}
}

// banned returns how long the longest ban of the enforced policies lasts.
func (m *model) banned(now int64) (left time.Duration) {
	for _, p := range m.parts {
		if !p.shadow {
			left = max(left, p.bans.left(now))
		}
	}
	return left
}

// bars returns how many policies ban the subject, and 0 if only one can.
func (m *model) bars(now int64) (n int) {
	can := 0
	for _, p := range m.parts {
		can += btoi(p.bans != nil)
		n += btoi(p.bans.left(now) > 0)
	}
	return n * btoi(can > 1)
}

// over reports whether there was a ban or a denial that does not count any more.
func (b *banState) over(rule *limit.Ban, now int64) bool {
	return b != nil && (b.length > 0 && b.left(now) == 0 || b.denials > 0 && now/1000-b.from >= rule.Within.Milliseconds())
}

// mends cuts a ban that is longer than it can be, because the clock was set back.
func (b *banState) mends(now int64) (undo func()) {
	ms := now / 1000
	return mended(b.ends-ms > b.length || b.from > ms, b, func() {
		b.ends, b.from = min(b.ends, ms+b.length), min(b.from, ms)
	})
}

// hears has a process learn what Redis says of a ban. It replaces what Redis said before, and not a
// longer ban that the process has begun itself.
func (b *banState) hears(left, now int64) {
	lasts := now < b.ends
	switch {
	case left == 0 && lasts && b.told:
		*b = banState{}
	case left > 0 && (b.told || now+left >= b.ends):
		length := left
		if lasts {
			length = max(left, b.length)
		}
		*b = banState{ends: now + left, length: length, told: true}
	}
}

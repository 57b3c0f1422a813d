package limit_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// algorithm is one kind of policy, with what one subject has taken. Times are microseconds since
// 1970.
type algorithm interface {
	// become takes over the numbers of a policy of its kind.
	become(p limit.Policy)
	// tick is the smallest step of its clock.
	tick() int64
	limit() int64
	// window is the longest time in which it becomes whole again, or 0 for a month.
	window(now int64) time.Duration

	// free is how many permits can be taken at that time if no others are taken until then. It is
	// below 0 if more are in use than the limit.
	free(now int64) int64
	// idle reports whether nothing is in use.
	idle(now int64) bool

	// take takes permits that are free.
	take(now, n int64) mark
	// giveBack gives back n permits of what was taken at a mark, as far as they are still in use.
	giveBack(now int64, of mark, n int64) (given bool)
	// owe charges permits that were used already, and returns how many it cannot hold.
	owe(now, n int64) (forgiven int64)
}

// mark is where a decision took its permits; nil is nowhere.
type mark any

func newAlgorithm(s spec) algorithm {
	if s.lease > 0 {
		return newLeased(s)
	}
	switch p := s.base.(type) {
	case limit.TokenBucket:
		if s.kept {
			return new(keptBucket)
		}
		return new(bucket)
	case limit.FixedWindow:
		return new(window)
	case limit.CalendarWindow:
		return new(calendar)
	case limit.SlidingWindow:
		return new(sliding)
	case limit.SlidingLog:
		return new(slidingLog)
	default:
		panic(fmt.Sprintf("there is no model of a %T", p))
	}
}

const millisecond = 1000

// floorDiv divides by a number above 0 and rounds down.
func floorDiv(a, b int64) int64 {
	if a < 0 {
		return -((b - 1 - a) / b)
	}
	return a / b
}

// bucket owes a debt that drains. A permit is a whole number of units, and so is what drains in a
// tick: of a millisecond up to one permit a millisecond, and else of a microsecond.
type bucket struct {
	broken

	burst, most int64 // of permits; most is with the MaxDebt
	unit, drain int64
	step        int64

	debt, at int64 // in units, and ticks
}

func (b *bucket) become(p limit.Policy) {
	of := p.(limit.TokenBucket)
	b.burst = cmp.Or(of.Burst, of.Rate)
	b.most = b.burst + of.MaxDebt
	b.step = 1
	if of.Rate <= of.Per.Milliseconds() {
		b.step = millisecond
	}
	b.unit, b.drain = reduced(int64(of.Per), of.Rate*b.step*1000)
}

// reduced divides two numbers by what they have in common.
func reduced(a, b int64) (int64, int64) {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x, b / x
}

func (b *bucket) tick() int64  { return b.step }
func (b *bucket) limit() int64 { return b.burst }

func (b *bucket) window(int64) time.Duration {
	ticks := (b.burst*b.unit + b.drain - 1) / b.drain
	return time.Duration(ticks*b.step) * time.Microsecond
}

// owed is the debt at that time.
func (b *bucket) owed(now int64) int64 {
	ticks := now/b.step - b.at
	if ticks > b.debt/b.drain {
		return 0
	}
	return b.debt - ticks*b.drain
}

func (b *bucket) free(now int64) int64 { return floorDiv(b.burst*b.unit-b.owed(now), b.unit) }
func (b *bucket) idle(now int64) bool  { return b.owed(now) == 0 }

// drained is the mark of a bucket: what it owed when a decision had taken its permits.
type drained struct{ debt, at int64 }

func (b *bucket) take(now, n int64) mark {
	b.debt, b.at = b.owed(now)+n*b.unit, now/b.step
	return drained{b.debt, now}
}

// giveBack is exact at the moment of the decision. Later it gives back less by what drains in the
// time by which clocks may differ.
func (b *bucket) giveBack(now int64, of mark, n int64) bool {
	if of.(drained).at != now {
		panic("the model of a bucket does not know what is left")
	}
	if b.idle(now) {
		return false
	}
	b.debt, b.at = max(b.owed(now)-n*b.unit, 0), now/b.step
	return true
}

func (b *bucket) owe(now, n int64) (forgiven int64) {
	room := max(b.most*b.unit-b.owed(now), 0)
	charged := n * b.unit
	if n > room/b.unit {
		charged = room
	}
	b.debt, b.at = b.owed(now)+charged, now/b.step
	return n - charged/b.unit
}

// keptBucket counts millionths of a permit, and microseconds. It remembers what was charged and
// since when. The debt drains by the numbers of the policy that charged last.
type keptBucket struct {
	burst, most int64 // of permits
	drain, per  int64 // drain millionths in per microseconds

	charged, since int64
	by             struct{ drain, per, most int64 } // the numbers that charged last
}

const millionths = 1_000_000

func (b *keptBucket) become(p limit.Policy) {
	of := p.(limit.TokenBucket)
	b.burst = cmp.Or(of.Burst, of.Rate)
	b.most = b.burst + of.MaxDebt
	b.per, b.drain = reduced(int64(of.Per), of.Rate*millionths*1000)
}

func (b *keptBucket) tick() int64  { return 1 }
func (b *keptBucket) limit() int64 { return b.burst }

func (b *keptBucket) window(int64) time.Duration {
	return time.Duration((b.burst*millionths*b.per+b.drain-1)/b.drain) * time.Microsecond
}

func (b *keptBucket) owed(now int64) int64 {
	passed := max(now-b.since, 0)
	if b.charged == 0 || passed >= (b.charged*b.by.per+b.by.drain-1)/b.by.drain {
		return 0
	}
	return b.charged - passed*b.by.drain/b.by.per
}

func (b *keptBucket) free(now int64) int64 {
	return floorDiv(b.burst*millionths-b.owed(now), millionths)
}
func (b *keptBucket) idle(now int64) bool { return b.owed(now) == 0 }

func (b *keptBucket) take(now, n int64) mark {
	b.add(now, n*millionths)
	return drained{b.owed(now), now}
}

// add begins a new count if nothing is owed, if other numbers charged last, and before the count
// becomes inexact. The debt is then rounded up.
func (b *keptBucket) add(now, charge int64) {
	by := struct{ drain, per, most int64 }{b.drain, b.per, b.most}
	if b.idle(now) || b.by != by || (now-b.since)*b.drain > 1<<52 {
		b.charged, b.since = b.owed(now), now
	}
	b.charged += charge
	b.by = by
}

// giveBack is as that of a bucket. What other numbers have charged since is not given back.
func (b *keptBucket) giveBack(now int64, of mark, n int64) bool {
	if of.(drained).at != now {
		panic("the model of a bucket does not know what is left")
	}
	if b.idle(now) || b.by != struct{ drain, per, most int64 }{b.drain, b.per, b.most} || b.since > now {
		return false
	}
	b.charged -= min(n*millionths, b.owed(now))
	if b.idle(now) {
		b.charged = 0
	}
	return true
}

func (b *keptBucket) owe(now, n int64) (forgiven int64) {
	room := max(b.most*millionths-b.owed(now), 0)
	charge := room
	if n <= room/millionths {
		charge = n * millionths
	}
	if charge > 0 {
		b.add(now, charge)
	}
	return n - charge/millionths
}

// counter is what a fixed window and a calendar window have in common.
type counter struct {
	broken

	most, debt int64 // the limit, and how far more may be owed
	used, ends int64
}

func (*counter) tick() int64    { return millisecond }
func (c *counter) limit() int64 { return c.most }

func (c *counter) free(now int64) int64 {
	if c.idle(now) {
		return c.most
	}
	return c.most - c.used
}

func (c *counter) idle(now int64) bool { return c.used == 0 || now >= c.ends }

// add charges permits in the running window, or in one that ends at that time.
func (c *counter) add(now, n, ends int64) mark {
	if c.idle(now) {
		c.used, c.ends = 0, ends
	}
	c.used += n
	return c.ends
}

// giveBack gives back only while the window of the decision lasts.
func (c *counter) giveBack(now int64, of mark, n int64) bool {
	if c.idle(now) || c.ends != of.(int64) {
		return false
	}
	c.used = max(c.used-n, 0)
	return true
}

func (c *counter) charge(now, n, ends int64) (forgiven int64) {
	room := max(min(c.free(now)+c.debt, n), 0)
	c.add(now, room, ends)
	return n - room
}

// window begins with its first request.
type window struct {
	counter

	length int64
}

func (w *window) become(p limit.Policy) {
	of := p.(limit.FixedWindow)
	w.most, w.debt, w.length = of.Limit, of.MaxDebt, of.Window.Microseconds()
}

func (w *window) window(int64) time.Duration { return time.Duration(w.length) * time.Microsecond }
func (w *window) next(now int64) int64       { return now - now%millisecond + w.length }
func (w *window) take(now, n int64) mark     { return w.add(now, n, w.next(now)) }
func (w *window) owe(now, n int64) int64     { return w.charge(now, n, w.next(now)) }

// sliding has windows in a row. The first begins with its first request. The one before counts in
// proportion to how much of it the sliding window still covers.
type sliding struct {
	broken

	most, length int64

	from          int64 // when the running window began
	last, current int64
}

func (s *sliding) become(p limit.Policy) {
	of := p.(limit.SlidingWindow)
	s.most, s.length = of.Limit, of.Window.Microseconds()
}

func (*sliding) tick() int64                  { return millisecond }
func (s *sliding) limit() int64               { return s.most }
func (s *sliding) window(int64) time.Duration { return time.Duration(s.length) * time.Microsecond }

// at returns the state at a time if nothing is taken until then.
func (s *sliding) at(now int64) sliding {
	is := *s
	now -= now % millisecond
	if now-is.from >= is.length {
		is.from, is.last, is.current = is.from+is.length, is.current, 0
	}
	if now-is.from >= is.length {
		is.last = 0
	}
	if is.last == 0 && is.current == 0 {
		is.from = now
	}
	return is
}

func (s *sliding) free(now int64) int64 {
	is := s.at(now)
	rest := is.length - (now - now%millisecond - is.from)
	return is.most - is.current - shareOf(is.last, rest, is.length)
}

// shareOf is last·rest/length, rounded up. The lengths are whole milliseconds.
func shareOf(last, rest, length int64) int64 {
	rest, length = rest/millisecond, length/millisecond
	if last > math.MaxInt64/max(rest, 1) {
		panic("a sliding window beyond the model")
	}
	return (last*rest + length - 1) / length
}

func (s *sliding) idle(now int64) bool {
	is := s.at(now)
	return is.last == 0 && is.current == 0
}

func (s *sliding) take(now, n int64) mark {
	*s = s.at(now)
	s.current += n
	return s.from
}

func (s *sliding) giveBack(now int64, of mark, n int64) bool {
	*s = s.at(now)
	in := &s.current
	if of.(int64) == s.from-s.length {
		in = &s.last
	} else if of.(int64) != s.from {
		return false
	}
	if *in == 0 {
		return false
	}
	*in = max(*in-n, 0)
	return true
}

func (s *sliding) owe(now, n int64) (forgiven int64) {
	charged := max(min(s.free(now), n), 0)
	s.take(now, charged)
	return n - charged
}

// slidingLog has the time of every permit.
type slidingLog struct {
	most, length int64

	entries []int64
}

func (l *slidingLog) become(p limit.Policy) {
	of := p.(limit.SlidingLog)
	l.most, l.length = of.Limit, of.Window.Microseconds()
}

func (*slidingLog) tick() int64                  { return 1 }
func (l *slidingLog) limit() int64               { return l.most }
func (l *slidingLog) window(int64) time.Duration { return time.Duration(l.length) * time.Microsecond }

// used is how many permits are in the window that ends at that time.
func (l *slidingLog) used(now int64) int64 {
	gone := sort.Search(len(l.entries), func(i int) bool { return l.entries[i]+l.length > now })
	return int64(len(l.entries) - gone)
}

func (l *slidingLog) free(now int64) int64 { return l.most - l.used(now) }
func (l *slidingLog) idle(now int64) bool  { return l.used(now) == 0 }

func (l *slidingLog) take(now, n int64) mark {
	l.entries = slices.Clone(l.entries[int64(len(l.entries))-l.used(now):])
	for range n {
		l.entries = append(l.entries, now)
	}
	return now
}

func (l *slidingLog) giveBack(now int64, of mark, n int64) (given bool) {
	at, found := slices.BinarySearch(l.entries, of.(int64))
	if !found || of.(int64)+l.length <= now {
		return false
	}
	for ; n > 0 && at < len(l.entries) && l.entries[at] == of.(int64); n-- {
		l.entries = slices.Delete(l.entries, at, at+1)
	}
	return true
}

// owe is never asked for: a log cannot be settled.
func (*slidingLog) owe(int64, int64) int64 { panic("a log was settled") }

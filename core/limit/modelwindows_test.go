package limit_test

import (
	"math"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// counter is what a fixed window and a calendar window have in common.
type counter struct {
	broken

	most, debt int64 // the limit, and how far more may be owed
	used, ends int64
}

func (*counter) tick() int64 { return millisecond }

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

func (w *window) next(now int64) int64 { return now - now%millisecond + w.length }

func (w *window) take(now, n int64) mark { return w.add(now, n, w.next(now)) }

func (w *window) owe(now, n int64) int64 { return w.charge(now, n, w.next(now)) }

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

func (*sliding) tick() int64 { return millisecond }

func (s *sliding) limit() int64 { return s.most }

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

func (w *window) clone() algorithm { c := *w; return &c }

func (s *sliding) clone() algorithm { c := *s; return &c }

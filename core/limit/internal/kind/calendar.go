package kind

import (
	"errors"
	"sync/atomic"
	"time"
)

// longestPeriod is at least as long as any month.
const longestPeriod = 32 * 24 * time.Hour

// calendar is a calendar window.
type calendar struct {
	base
	civil
	ahead atomic.Int64 // milliseconds by which the clock of Redis is ahead of this one, if it was found far off
	known atomic.Pointer[bounds]
}

// bounds are the starts of three windows in a row, and the end of the last, in
// milliseconds.
type bounds struct {
	at      [4]int64
	numbers []any // as limit_calendar.lua takes them
}

// NewCalendar returns a calendar window, or an error for each fault.
func NewCalendar(limit int64, every Period, in *time.Location, debt int64) (Algorithm, error) {
	if err := errors.Join(checkPositive("Limit", limit), checkDebt(debt)); err != nil {
		return nil, err
	}
	largest, err := owing(limit, debt)
	if err != nil {
		return nil, err
	}
	return &calendar{
		base: base{Facts{
			Kind: "calendar", Limit: limit, Unit: 1, Largest: largest, Width: 3, told: 1,
			Packs: Fits(largest+1, 3, longestPeriod.Milliseconds()), Lasts: true, Estimates: true, Moves: true,
		}},
		civil: civil{every, in},
	}, nil
}

// boundsAt returns the bounds around a time in milliseconds, which is in the second
// window.
func (w *calendar) boundsAt(now int64) *bounds {
	if b := w.known.Load(); b != nil && b.at[1] <= now && now < b.at[2] {
		return b
	}
	b := &bounds{numbers: []any{Integer(w.Limit)}}
	for i, start := range w.around(time.UnixMilli(now)) {
		b.at[i] = start.UnixMilli()
		b.numbers = append(b.numbers, Integer(b.at[i]))
	}
	b.numbers = append(b.numbers, Integer(w.Largest))
	w.known.Store(b)
	return b
}

// length returns how long the present window is.
func (b *bounds) length() int64 { return b.at[2] - b.at[1] }

func (w *calendar) Numbers() []any {
	return w.boundsAt(time.Now().UnixMilli() + w.ahead.Load()).numbers
}

// A reading is {used, rest of the window in ms, length of the window in ms}.

// Unpack assumes that the current windows are those that were sent. If a boundary has
// passed since, only the length can be wrong.
func (w *calendar) Unpack(n int64) (Reading, bool) {
	b := w.boundsAt(time.Now().UnixMilli() + w.ahead.Load())
	which, packed := n%3, n/3
	return Reading{N: [4]int64{packed % (w.Largest + 1), packed / (w.Largest + 1), b.at[which+1] - b.at[which]}}, true
}

func (w *calendar) Advance(c *Cell, now int64) {
	c.now = now / 1000
	if c.m = min(c.m, w.boundsAt(c.now).at[2]); c.now >= c.m {
		c.n = 0
	}
}

func (*calendar) Room(c *Cell, largest int64) int64 { return largest - c.n }

func (w *calendar) Add(c *Cell, units int64) {
	if c.n == 0 {
		c.m = w.boundsAt(c.now).at[2]
	}
	c.n += units
}

func (w *calendar) Refund(c *Cell, told, _, back int64, at Moment) bool {
	if c.n == 0 || !at.in(c.m, told, w.boundsAt(c.now).length()/2) {
		return false
	}
	c.n = max(c.n-back, 0)
	return true
}

func (w *calendar) Read(c *Cell, _ int64) Reading {
	r := Reading{N: [4]int64{c.n, 0, w.boundsAt(c.now).length()}}
	if c.n > 0 {
		r.N[1] = c.m - c.now
	}
	return r
}

func (*calendar) Resume(c *Cell, r Reading, at int64) {
	c.n, c.m = r.N[0], at/1000+r.N[1]
}

func (*calendar) Age(r Reading, passed int64) Reading {
	if r.N[1] -= passed / 1000; r.N[1] <= 0 {
		r.N[0], r.N[1] = 0, 0
	}
	return r
}

// Figures has no Window for months, which differ in length.
func (w *calendar) Figures(r Reading, _ int64) Figures {
	var length time.Duration
	if w.every != Month {
		length = time.Duration(r.N[2]) * time.Millisecond
	}
	return windowed(&w.Facts, r, length)
}

// Beyond is 0, because windows differ in length.
func (*calendar) Beyond(int64, int64) float64 { return 0 }

// Seen stores what time it is in Redis, in milliseconds, for each calendar. It is called if that
// time is in none of the windows that were sent.
func (s *Set) Seen(now int64) {
	for _, r := range s.Rules {
		if w, is := r.Algorithm.(*calendar); is {
			w.ahead.Store(now - time.Now().UnixMilli())
		}
	}
}

// Length returns how long the window of a calendar is at a time, both in milliseconds.
func (r *Rule) Length(now int64) int64 {
	if w, is := r.Algorithm.(*calendar); is {
		return w.boundsAt(now).length()
	}
	return 0
}

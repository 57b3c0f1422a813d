package kind

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// sliding is a sliding window of two counters. In use are last·rest/length + current. They
// are compared in permits times milliseconds, so that all numbers are whole.
type sliding struct {
	base
	length int64 // in milliseconds
	most   int64 // the most that a counter can hold: the limit, or that of other processes
}

// NewSliding returns a sliding window, or an error for each fault. If it keeps its state when
// its numbers change, its counters are packed in the same way whatever the limit is.
func NewSliding(limit int64, length time.Duration, keeps bool) (Algorithm, error) {
	if err := errors.Join(
		checkPositive("Limit", limit),
		checkWhole("Window", length, time.Millisecond, "milliseconds"),
	); err != nil {
		return nil, err
	}
	millis := length.Milliseconds()
	if length > math.MaxInt64/2 {
		return nil, fmt.Errorf("Window is %v: the figures reach two windows ahead; use at most 146 years", length)
	}
	if !Fits(limit, 4) || !Fits(limit+1, limit+1) || !Fits(limit, millis, 4) {
		return nil, inexact("Limit and Window", "use a smaller Limit or Window, or a FixedWindow")
	}
	most := limit
	if keeps {
		if most = min(mostKeptCount, Exact/4/millis-1); limit > most {
			return nil, fmt.Errorf("Limit is %d: KeepOnChange keeps at most %d in a SlidingWindow of %v; use a smaller Limit, or a FixedWindow",
				limit, most, length)
		}
	}
	return &sliding{
		base: base{Facts{
			Kind: "sliding", Limit: limit, Unit: 1, Largest: limit, Width: 3, Counted: 1, told: 2,
			Packs: Fits(limit+1, limit+1, millis+1), Lasts: true, window: length,
		}},
		length: millis,
		most:   most,
	}, nil
}

// mostKeptCount is the most that a counter can hold that is kept: (mostKeptCount + 1)² is
// still exact.
const mostKeptCount = 1<<26 - 1

func (s *sliding) Numbers() []any {
	return []any{Integer(s.Limit), Integer(s.length), Integer(s.most)}
}

// A reading is {last, current, rest of the running window in ms}.

func (s *sliding) Unpack(packed int64) (Reading, bool) {
	counters, rest := packed/(s.length+1), packed%(s.length+1)
	return Reading{N: [4]int64{counters / (s.Limit + 1), counters % (s.Limit + 1), rest}}, true
}

// Plausible also reports that Figures can multiply the numbers.
func (s *sliding) Plausible(r Reading) bool {
	return min(r.N[0], r.N[1]) >= 0 && Fits(max(r.N[0], r.N[1], 1), s.length)
}

func (s *sliding) Advance(c *Cell, now int64) {
	c.now = now / 1000
	if c.now-c.from >= s.length {
		c.from, c.n, c.m = c.from+s.length, 0, c.n
	}
	if c.now-c.from >= s.length {
		c.m = 0
	}
	if c.n == 0 && c.m == 0 {
		c.from = c.now
	}
}

func (s *sliding) rest(c *Cell) int64 { return s.length - (c.now - c.from) }

func (s *sliding) Room(c *Cell, largest int64) int64 {
	return (largest*s.length-c.m*s.rest(c))/s.length - c.n
}

func (*sliding) Add(c *Cell, units int64) { c.n += units }

func (s *sliding) Refund(c *Cell, told, _, back int64, at Moment) bool {
	end, counter := c.from+s.length, &c.n
	if at.in(c.from, told, s.length) {
		end, counter = c.from, &c.m
	}
	if *counter == 0 || !at.in(end, told, s.length) {
		return false
	}
	*counter = max(*counter-back, 0)
	return true
}

func (s *sliding) Read(c *Cell, _ int64) Reading {
	if c.n == 0 && c.m == 0 {
		return Reading{}
	}
	return Reading{N: [4]int64{c.m, c.n, s.rest(c)}}
}

func (s *sliding) Resume(c *Cell, r Reading, at int64) {
	c.m, c.n, c.from = r.N[0], r.N[1], at/1000+r.N[2]-s.length
}

func (s *sliding) Age(r Reading, passed int64) Reading {
	r.N[2] -= passed / 1000
	for range 2 {
		if r.N[2] <= 0 {
			r.N[0], r.N[1], r.N[2] = r.N[1], 0, r.N[2]+s.length
		}
	}
	if r.N[0] == 0 && r.N[1] == 0 {
		return Reading{Denied: r.Denied}
	}
	return r
}

func (s *sliding) Figures(r Reading, cost int64) Figures {
	last, current, rest := r.N[0], r.N[1], r.N[2]
	f := Figures{
		Allowed:   !r.Denied,
		Remaining: max(s.Limit-current-CeilDiv(last*rest, s.length), 0),
		Window:    s.window,
	}
	switch {
	case current > 0:
		f.ResetAfter = time.Duration(rest+s.length) * time.Millisecond
	case last > 0:
		f.ResetAfter = time.Duration(rest) * time.Millisecond
	}
	if f.Remaining < s.Limit {
		f.NextAfter = s.wait(r, f.Remaining+1)
	}
	if r.Denied {
		f.RetryAfter = s.wait(r, cost)
	}
	return f
}

// wait returns how long until cost is admitted, if no other request is made. In the
// running window, room comes as the last window's share shrinks; after it, as the running
// window's share does.
func (s *sliding) wait(r Reading, cost int64) time.Duration {
	last, current, rest := r.N[0], r.N[1], r.N[2]
	fading, room, left, passed := last, s.Limit-current-cost, rest, int64(0)
	if room < 0 {
		fading, room, left, passed = current, s.Limit-cost, s.length, rest
	}
	if fading > 0 {
		passed += max(left-room*s.length/fading, 0)
	}
	return time.Duration(passed) * time.Millisecond
}

// Beyond is a bound, since two windows overlap.
func (s *sliding) Beyond(over, _ int64) float64 {
	return float64(over/s.Limit) * float64(s.window)
}

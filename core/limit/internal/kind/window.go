package kind

import (
	"errors"
	"time"
)

// window is a fixed window.
type window struct {
	base
	length int64 // in milliseconds
}

// NewWindow returns a fixed window, or an error for each fault.
func NewWindow(limit int64, length time.Duration, debt int64) (Algorithm, error) {
	if err := errors.Join(
		checkPositive("Limit", limit),
		checkWhole("Window", length, time.Millisecond, "milliseconds"),
		checkDebt(debt),
	); err != nil {
		return nil, err
	}
	largest, err := owing(limit, debt)
	if err != nil {
		return nil, err
	}
	millis := length.Milliseconds()
	return &window{
		base: base{Facts{
			Kind: "window", Limit: limit, Unit: 1, Largest: largest, Width: 2, told: 1, Packs: Fits(largest+1, millis+1),
			Lasts: true, Estimates: true, window: length,
		}},
		length: millis,
	}, nil
}

func (w *window) Numbers() []any {
	return []any{Integer(w.Limit), Integer(w.length), Integer(w.Largest)}
}

// A reading is {used, rest of the window in ms}.

func (w *window) Unpack(packed int64) (Reading, bool) {
	return Reading{N: [4]int64{packed % (w.Largest + 1), packed / (w.Largest + 1)}}, true
}

func (w *window) Advance(c *Cell, now int64) {
	c.now = now / 1000
	if c.now-c.from >= w.length {
		c.n = 0
	}
}

func (*window) Room(c *Cell, largest int64) int64 { return largest - c.n }

func (*window) Add(c *Cell, units int64) {
	if c.n == 0 {
		c.from = c.now
	}
	c.n += units
}

func (w *window) Refund(c *Cell, told, _, back int64, at Moment) bool {
	if c.n == 0 || !at.in(c.from+w.length, told, w.length) {
		return false
	}
	c.n = max(c.n-back, 0)
	return true
}

func (w *window) Read(c *Cell, _ int64) Reading {
	if c.n == 0 {
		return Reading{}
	}
	return Reading{N: [4]int64{c.n, w.length - (c.now - c.from)}}
}

func (w *window) Resume(c *Cell, r Reading, at int64) {
	c.n, c.from = r.N[0], at/1000+r.N[1]-w.length
}

func (*window) Age(r Reading, passed int64) Reading {
	if r.N[1] -= passed / 1000; r.N[1] <= 0 {
		return Reading{Denied: r.Denied}
	}
	return r
}

func (w *window) Figures(r Reading, _ int64) Figures {
	return windowed(&w.Facts, r, w.window)
}

// windowed returns the figures of what ends with a window.
func windowed(of *Facts, r Reading, length time.Duration) Figures {
	used, rest := r.N[0], time.Duration(r.N[1])*time.Millisecond
	f := Figures{Allowed: !r.Denied, Remaining: max(of.Limit-used, 0), Window: length}
	if used > 0 {
		f.NextAfter, f.ResetAfter = rest, rest
	}
	if r.Denied {
		f.RetryAfter = rest
	}
	return f
}

package kind

import (
	"math"
	"time"
)

// micro is how many units of a kept bucket a permit costs.
const micro = 1_000_000

// mostDrained is how much may drain of what was charged before the count begins again.
const mostDrained = Exact / 2

// kept is a token bucket whose numbers may change. It is a debt in millionths of a
// permit, which drains by the numbers of the policy that charged it last. In a cell, n is
// what was charged and from is since when, as in limit_kept.lua.
type kept struct {
	base
	capacity int64
	drain    int64 // how many units drain
	per      int64 // in this many microseconds
}

func (p Bucket) kept() (Algorithm, error) {
	const perMicrosecond = micro * int64(time.Microsecond) // units in a permit, times nanoseconds in a microsecond
	burst := p.Most()
	if p.Rate <= math.MaxInt64/perMicrosecond && burst <= Exact && p.MaxDebt <= Exact {
		per, drain := int64(p.Per), p.Rate*perMicrosecond
		shared := gcd(per, drain)
		per, drain = per/shared, drain/shared
		if most := burst + p.MaxDebt; Fits(micro, most, per, 4) && Fits(drain, 4) {
			capacity := burst * micro
			whole := gone(capacity, drain, per) * int64(time.Microsecond)
			return &kept{
				base: base{Facts{
					Kind: "kept", Limit: burst, Unit: micro, Largest: most * micro, Width: 4, Packs: true,
					Heaviest: burst * max(min(1<<61/(capacity*per), math.MaxInt64/2/whole), 1),
				}},
				capacity: capacity,
				drain:    drain,
				per:      per,
			}, nil
		}
	}
	return nil, inexact("Rate, Per, Burst and MaxDebt in millionths of a permit",
		"use a smaller Burst or MaxDebt, a Per of whole microseconds, or a Rate and Per with a common divisor; or leave out KeepOnChange")
}

func (b *kept) Numbers() []any {
	return []any{Integer(b.capacity), Integer(b.drain), Integer(b.per), Integer(b.Largest)}
}

// A reading is {charged, microseconds since then, drain, per}. While nothing has drained, its
// first number is enough.

func (b *kept) Unpack(n int64) (Reading, bool) {
	return Reading{N: [4]int64{n, 0, b.drain, b.per}}, true
}

// Plausible also reports that Figures can divide by the numbers.
func (*kept) Plausible(r Reading) bool {
	return min(r.N[0], r.N[1]) >= 0 && r.N[2] > 0 && r.N[3] > 0 && Fits(max(r.N[0], 1), r.N[3])
}

func (*kept) Advance(c *Cell, now int64) {
	if c.now = now; c.owes() == 0 {
		c.n, c.from = 0, now
	}
}

// gone returns after how many microseconds nothing is left of some units.
func gone(units, drain, per int64) int64 { return CeilDiv(units*per, drain) }

// drained returns how much drains in passed microseconds.
func drained(passed, drain, per int64) int64 {
	whole := passed * drain
	if rest := whole % per; rest < 0 { // round down
		return (whole-rest)/per - 1
	}
	return whole / per
}

// owes returns the debt of a cell.
func (c *Cell) owes() int64 {
	passed := max(c.now-c.from, 0)
	if c.n == 0 || passed >= gone(c.n, c.by.drain, c.by.per) {
		return 0
	}
	return c.n - drained(passed, c.by.drain, c.by.per)
}

func (*kept) Room(c *Cell, largest int64) int64 { return largest - c.owes() }

// charged reports whether a policy with the same numbers charged the cell last.
func (b *kept) charged(c *Cell) bool {
	return c.by != nil && c.by.drain == b.drain && c.by.per == b.per && c.by.Largest == b.Largest
}

func (b *kept) Add(c *Cell, units int64) {
	if debt := c.owes(); debt == 0 || !b.charged(c) || (c.now-c.from)*b.drain > mostDrained {
		c.n, c.from = debt, c.now
	}
	c.n += units
	c.by = b
}

// Told returns the debt.
func (b *kept) Told(r Reading) int64 { return b.owed(r) }

// Refund gives back what has not drained yet, as a bucket does, unless a policy with
// other numbers has charged since.
func (b *kept) Refund(c *Cell, told, cost, part int64, at Moment) bool {
	debt := c.owes()
	if debt == 0 || !b.charged(c) || c.from > at.Latest || c.now-at.Soonest > gone(told, b.drain, b.per) {
		return false
	}
	left := func(taken int64) int64 {
		return told + drained(min(taken, c.now)-c.from, b.drain, b.per) - drained(c.now-c.from, b.drain, b.per)
	}
	back := undrained(left(at.Soonest), left(at.Latest), cost*micro, debt, micro)
	if back == 0 {
		return false
	}
	if part <= back/micro {
		back = part * micro
	}
	if c.n -= min(back, debt); c.owes() == 0 {
		c.n, c.from = 0, c.now
	}
	return true
}

func (b *kept) Read(c *Cell, _ int64) Reading {
	if c.n == 0 {
		return Reading{N: [4]int64{0, 0, b.drain, b.per}}
	}
	return Reading{N: [4]int64{c.n, c.now - c.from, c.by.drain, c.by.per}}
}

func (b *kept) Resume(c *Cell, r Reading, at int64) {
	by := *b
	by.drain, by.per = r.N[2], r.N[3]
	c.n, c.from, c.by = r.N[0], at-r.N[1], &by
}

func (b *kept) Age(r Reading, passed int64) Reading {
	if passed >= b.until(r, 0) {
		r.N = [4]int64{0, 0, b.drain, b.per}
		return r
	}
	r.N[1] += passed
	return r
}

// until returns how many microseconds it takes until at most debt is owed, if no request
// charges it.
func (*kept) until(r Reading, debt int64) int64 {
	return max(gone(r.N[0]-debt, r.N[2], r.N[3])-r.N[1], 0)
}

// owed returns the debt in a reading.
func (b *kept) owed(r Reading) int64 {
	if b.until(r, 0) == 0 {
		return 0
	}
	return r.N[0] - drained(r.N[1], r.N[2], r.N[3])
}

func (b *kept) Figures(r Reading, cost int64) Figures {
	debt := b.owed(r)
	after := func(debt int64) time.Duration { return time.Duration(b.until(r, debt)) * time.Microsecond }
	f := Figures{
		Allowed:    !r.Denied,
		Remaining:  max((b.capacity-debt)/micro, 0),
		Window:     time.Duration(gone(b.capacity, b.drain, b.per)) * time.Microsecond,
		ResetAfter: after(0),
	}
	if f.Remaining < b.Limit {
		f.NextAfter = after(b.capacity - (f.Remaining+1)*micro)
	}
	if r.Denied {
		f.RetryAfter = after(b.capacity - cost*micro)
	}
	return f
}

func (b *kept) Beyond(over, _ int64) float64 {
	return float64(over) * micro / float64(b.drain) * float64(b.per) * float64(time.Microsecond)
}

package kind

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Bucket is the numbers of a token bucket.
type Bucket struct {
	Rate           int64
	Per            time.Duration
	Burst, MaxDebt int64
}

// bucket is a token bucket, stored as a debt that drains: a permit costs Unit, and drain
// units drain in every tick.
type bucket struct {
	base
	capacity int64
	drain    int64
	whole    time.Duration // how long the full capacity takes to drain
	empty    time.Duration // how long the largest debt takes to drain
	longest  int64         // the longest time to live, in milliseconds
}

// New returns the algorithm, or an error for each fault. If keeps is true, it is a kept bucket, whose
// state survives a change of its numbers.
func (p Bucket) New(keeps bool) (Algorithm, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if keeps {
		return p.kept()
	}
	// The key's PTTL is a millisecond clock, too coarse for more than a permit a
	// millisecond: before Redis 7.2 it can move within a script, and every permit would
	// lose a tick of drain.
	if b, ok := p.scale(time.Millisecond); ok && b.drain <= b.Unit {
		b.Kind = "bucket"
		b.longest = int64(b.empty / time.Millisecond)
		return b, nil
	}
	for _, tick := range []time.Duration{time.Microsecond, time.Millisecond, time.Second} {
		if b, ok := p.scale(tick); ok {
			b.Kind = "fast" // it uses TIME instead of the key's PTTL
			b.longest = CeilDiv(int64(b.empty+tick), int64(time.Millisecond)) + 1
			return b, nil
		}
	}
	return nil, inexact("Rate, Per, Burst and MaxDebt",
		"use a smaller Burst or MaxDebt, or a Rate and Per with a common divisor, and at most 290 years to refill")
}

func (p Bucket) check() error {
	err := errors.Join(checkPositive("Rate", p.Rate), checkLeast("Per", p.Per), checkDebt(p.MaxDebt))
	if p.Burst < 0 {
		err = errors.Join(err, fmt.Errorf("Burst is %d: use a positive number, or 0 for the Rate", p.Burst))
	}
	return err
}

// Most returns the Burst, or its default.
func (p Bucket) Most() int64 {
	if p.Burst == 0 {
		return p.Rate
	}
	return p.Burst
}

// scale finds the smallest whole units for a tick, so that exactly Rate permits drain in
// Per.
func (p Bucket) scale(tick time.Duration) (*bucket, bool) {
	if p.Rate > math.MaxInt64/int64(tick) {
		return nil, false
	}
	unit, drain := int64(p.Per), p.Rate*int64(tick)
	shared := gcd(unit, drain)
	unit, drain = unit/shared, drain/shared
	burst := p.Most()
	if burst > Exact || p.MaxDebt > Exact || !Fits(unit, burst+p.MaxDebt) || drain > Exact || unit*(burst+p.MaxDebt) > Exact-drain-unit {
		return nil, false
	}
	drains := func(permits int64) int64 { return CeilDiv(unit*permits, drain) }
	if most := drains(burst + p.MaxDebt); most > int64(math.MaxInt64/tick)-1 || most > Exact/2 { // a fast bucket stores now + most
		return nil, false
	}
	whole := time.Duration(drains(burst)) * tick
	return &bucket{
		base: base{Facts{
			Limit: burst, Unit: unit, Largest: unit * (burst + p.MaxDebt), Width: 1, Packs: true, Tick: tick,
			Heaviest: burst * max(min(1<<61/(unit*burst), math.MaxInt64/2/int64(whole)), 1),
		}},
		capacity: unit * burst,
		drain:    drain,
		whole:    whole,
		empty:    time.Duration(drains(burst+p.MaxDebt)) * tick,
	}, true
}

func (b *bucket) Numbers() []any {
	numbers := []any{Integer(b.capacity), Integer(b.drain), Integer(b.Largest)}
	if b.Kind == "fast" {
		numbers = append(numbers, Integer(b.Tick.Microseconds()), Integer(b.longest))
	}
	return numbers
}

// A reading is {debt}.

func (*bucket) Unpack(debt int64) (Reading, bool) { return Reading{N: [4]int64{debt}}, true }

func (b *bucket) Advance(c *Cell, now int64) {
	tick := now / b.Tick.Microseconds()
	if elapsed := tick - c.now; elapsed > c.n/b.drain {
		c.n = 0
	} else {
		c.n -= elapsed * b.drain
	}
	c.now = tick
}

func (*bucket) Room(c *Cell, largest int64) int64 { return largest - c.n }

func (*bucket) Add(c *Cell, units int64) { c.n += units }

// Refund gives back what has not drained yet.
func (b *bucket) Refund(c *Cell, told, cost, part int64, at Moment) bool {
	tick := b.Tick.Microseconds()
	back := undrained(b.left(told, c.now-at.Soonest/tick), b.left(told, c.now-at.Latest/tick), cost*b.Unit, c.n, b.Unit)
	if back == 0 {
		return false
	}
	if part <= back/b.Unit {
		back = part * b.Unit
	}
	c.n = max(c.n-back, 0)
	return true
}

// undrained returns what is left of a cost in a debt. The clock is known only roughly, so
// least and most bound what is left of the debt as it was after the cost. The oldest
// units drain first: while any of this cost is left, all costs that were taken after it
// are still there as a whole.
func undrained(least, most, cost, debt, unit int64) int64 {
	if least <= 0 || debt <= 0 {
		return 0
	}
	if least < cost && most-least < unit {
		// Younger costs are whole permits. That shows how much has drained better than
		// the clock of another machine does.
		younger := CeilDiv(debt-min(most, cost), unit) * unit
		least = max(debt-younger, least)
	}
	return min(least, cost)
}

// left returns what remains of a debt after some ticks.
func (b *bucket) left(debt, ticks int64) int64 {
	if ticks > debt/b.drain {
		return 0
	}
	return debt - max(ticks, 0)*b.drain
}

func (*bucket) Read(c *Cell, _ int64) Reading { return Reading{N: [4]int64{c.n}} }

func (b *bucket) Resume(c *Cell, r Reading, at int64) {
	c.now, c.n = at/b.Tick.Microseconds(), r.N[0]
}

func (b *bucket) Age(r Reading, passed int64) Reading {
	r.N[0] = b.left(r.N[0], passed/b.Tick.Microseconds())
	return r
}

func (b *bucket) Figures(r Reading, cost int64) Figures {
	debt := r.N[0]
	f := Figures{
		Allowed:    !r.Denied,
		Remaining:  max(b.capacity-debt, 0) / b.Unit,
		Window:     b.whole,
		ResetAfter: b.drained(debt),
	}
	if f.Remaining < b.Limit {
		f.NextAfter = b.drained(debt + (f.Remaining+1)*b.Unit - b.capacity)
	}
	if r.Denied {
		f.RetryAfter = b.drained(debt + cost*b.Unit - b.capacity)
	}
	return f
}

func (b *bucket) drained(units int64) time.Duration {
	return time.Duration(CeilDiv(units, b.drain)) * b.Tick
}

func (b *bucket) Beyond(over, _ int64) float64 {
	return float64(over) * float64(b.Unit) / float64(b.drain) * float64(b.Tick)
}

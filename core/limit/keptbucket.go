package limit

import (
	"math"
	"time"
)

// micro is how many units of a keptBucket a permit costs.
const micro = 1_000_000

// mostDrained is how much may drain of what was charged before the count begins again.
const mostDrained = exact / 2

// keptBucket is a token bucket whose numbers may change. It is a debt in millionths of a
// permit, which drains by the numbers of the policy that charged it last. In a cell, n is
// what was charged and from is since when, as in limit_kept.lua. A reading is
// {charged, microseconds since then, drain, per}.
type keptBucket struct {
	identity
	capacity int64
	largest  int64 // the largest debt: the capacity and MaxDebt
	drain    int64 // how many units drain
	per      int64 // in this many microseconds
}

func (p TokenBucket) compileKept() (rule, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	const perMicrosecond = micro * int64(time.Microsecond) // units in a permit, times nanoseconds in a microsecond
	burst := p.burst()
	if p.Rate <= math.MaxInt64/perMicrosecond && burst <= exact && p.MaxDebt <= exact {
		per, drain := int64(p.Per), p.Rate*perMicrosecond
		shared := gcd(per, drain)
		per, drain = per/shared, drain/shared
		if most := burst + p.MaxDebt; fits(micro, most, per, 4) && fits(drain, 4) {
			return &keptBucket{
				identity: newIdentity(p, burst, micro),
				capacity: burst * micro,
				largest:  most * micro,
				drain:    drain,
				per:      per,
			}, nil
		}
	}
	return nil, errInexact("Rate, Per, Burst and MaxDebt in millionths of a permit",
		"use a smaller Burst or MaxDebt, a Per of whole microseconds, or a Rate and Per with a common divisor; or leave out KeepOnChange")
}

func (b *keptBucket) most() int64 { return b.largest }

func (*keptBucket) kind() string { return "kept" }

func (b *keptBucket) numbers() []any {
	return []any{integer(b.capacity), integer(b.drain), integer(b.per), integer(b.largest)}
}

func (b *keptBucket) told(n []int64, back int64, _ bool) reading {
	return reading{n: [4]int64{n[0] - back, n[1], n[2], n[3]}}
}

func (b *keptBucket) unpack(n int64) (reading, bool) {
	return reading{n: [4]int64{n, 0, b.drain, b.per}}, n >= 0
}

func (*keptBucket) advance(c *cell, now int64) {
	if c.now = now; c.owes() == 0 {
		c.n, c.from = 0, now
	}
}

// gone returns after how many microseconds nothing is left of some units.
func gone(units, drain, per int64) int64 { return ceilDiv(units*per, drain) }

// drained returns how much drains in passed microseconds.
func drained(passed, drain, per int64) int64 {
	whole := passed * drain
	if rest := whole % per; rest < 0 { // round down
		return (whole-rest)/per - 1
	}
	return whole / per
}

// owes returns the debt of a keptBucket's cell.
func (c *cell) owes() int64 {
	passed := max(c.now-c.from, 0)
	if c.n == 0 || passed >= gone(c.n, c.by.drain, c.by.per) {
		return 0
	}
	return c.n - drained(passed, c.by.drain, c.by.per)
}

func (b *keptBucket) admits(c *cell, cost int64) bool { return c.owes()+cost*micro <= b.capacity }

func (b *keptBucket) charge(c *cell, cost int64) reading {
	b.add(c, cost*micro)
	return b.read(c, 0)
}

// charged reports whether a policy with the same numbers charged the cell last.
func (b *keptBucket) charged(c *cell) bool {
	return c.by != nil && c.by.drain == b.drain && c.by.per == b.per && c.by.largest == b.largest
}

// heaviest returns the largest debt in permits for which no arithmetic overflows.
func (b *keptBucket) heaviest() int64 {
	whole := gone(b.capacity, b.drain, b.per) * int64(time.Microsecond)
	return b.limit * max(min(1<<61/(b.capacity*b.per), math.MaxInt64/2/whole), 1)
}

func (b *keptBucket) add(c *cell, units int64) {
	if debt := c.owes(); debt == 0 || !b.charged(c) || (c.now-c.from)*b.drain > mostDrained {
		c.n, c.from = debt, c.now
	}
	c.n += units
	c.by = b
}

func (b *keptBucket) term(r reading) int64 { return b.owed(r) }

// refund gives back what has not drained yet, as a bucket does, unless a policy with
// other numbers has charged since.
func (b *keptBucket) refund(c *cell, told, cost, part int64, at moment) bool {
	debt := c.owes()
	if debt == 0 || !b.charged(c) || c.from > at.latest || c.now-at.soonest > gone(told, b.drain, b.per) {
		return false
	}
	left := func(taken int64) int64 {
		return told + drained(min(taken, c.now)-c.from, b.drain, b.per) - drained(c.now-c.from, b.drain, b.per)
	}
	back := undrained(left(at.soonest), left(at.latest), cost*micro, debt, micro)
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

func (b *keptBucket) owe(c *cell, permits int64) (forgiven int64) {
	more := max(b.largest-c.owes(), 0)
	if permits <= more/micro {
		more = permits * micro
	}
	if more > 0 {
		b.add(c, more)
	}
	return permits - more/micro
}

func (b *keptBucket) resume(c *cell, r reading, at int64) {
	by := *b
	by.drain, by.per = r.n[2], r.n[3]
	c.n, c.from, c.by = r.n[0], at-r.n[1], &by
}

func (b *keptBucket) read(c *cell, _ int64) reading {
	if c.n == 0 {
		return reading{n: [4]int64{0, 0, b.drain, b.per}}
	}
	return reading{n: [4]int64{c.n, c.now - c.from, c.by.drain, c.by.per}}
}

func (b *keptBucket) age(r reading, passed int64) reading {
	if passed >= b.until(r, 0) {
		r.n = [4]int64{0, 0, b.drain, b.per}
		return r
	}
	r.n[1] += passed
	return r
}

func (*keptBucket) lasts(reading) (left int64, ends bool) { return 0, false }

// until returns how many microseconds it takes until at most debt is owed, if no request
// charges it.
func (*keptBucket) until(r reading, debt int64) int64 {
	return max(gone(r.n[0]-debt, r.n[2], r.n[3])-r.n[1], 0)
}

// owed returns the debt in a reading.
func (b *keptBucket) owed(r reading) int64 {
	if b.until(r, 0) == 0 {
		return 0
	}
	return r.n[0] - drained(r.n[1], r.n[2], r.n[3])
}

func (b *keptBucket) state(r reading, cost int64) State {
	debt := b.owed(r)
	after := func(debt int64) time.Duration { return time.Duration(b.until(r, debt)) * time.Microsecond }
	s := State{
		Policy:     b.name,
		Allowed:    !r.denied,
		Limit:      b.limit,
		Remaining:  max((b.capacity-debt)/micro, 0),
		Window:     time.Duration(gone(b.capacity, b.drain, b.per)) * time.Microsecond,
		ResetAfter: after(0),
	}
	if s.Remaining < s.Limit {
		s.NextAfter = after(b.capacity - (s.Remaining+1)*micro)
	}
	if r.denied {
		s.RetryAfter = after(b.capacity - cost*micro)
	}
	return s
}

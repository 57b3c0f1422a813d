package limit

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/neap-go/neap/core/internal/reply"
)

// bucket is a token bucket, stored as a debt that drains: a permit costs unit, and drain
// units drain in every tick.
type bucket struct {
	identity
	capacity int64
	largest  int64 // the largest debt: the capacity and MaxDebt
	drain    int64
	tick     time.Duration
	fast     bool          // uses TIME instead of the key's PTTL
	whole    time.Duration // how long the full capacity takes to drain
	empty    time.Duration // how long the largest debt takes to drain
	longest  int64         // the longest time to live, in milliseconds
}

func (p TokenBucket) compile() (rule, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	// The key's PTTL is a millisecond clock, too coarse for more than a permit a
	// millisecond: before Redis 7.2 it can move within a script, and every permit would
	// lose a tick of drain.
	if b, ok := p.scale(time.Millisecond); ok && b.drain <= b.unit {
		b.longest = int64(b.empty / time.Millisecond)
		return b, nil
	}
	for _, tick := range []time.Duration{time.Microsecond, time.Millisecond, time.Second} {
		if b, ok := p.scale(tick); ok {
			b.fast = true
			b.longest = ceilDiv(int64(b.empty+tick), int64(time.Millisecond)) + 1
			return b, nil
		}
	}
	return nil, errInexact("Rate, Per, Burst and MaxDebt",
		"use a smaller Burst or MaxDebt, or a Rate and Per with a common divisor, and at most 290 years to refill")
}

func (p TokenBucket) check() error {
	err := errors.Join(checkPositive("Rate", p.Rate), checkLeast("Per", p.Per), checkDebt(p.MaxDebt))
	if p.Burst < 0 {
		err = errors.Join(err, fmt.Errorf("Burst is %d: use a positive number, or 0 for the Rate", p.Burst))
	}
	return err
}

// scale finds the smallest whole units for a tick, so that exactly Rate permits drain in
// Per.
func (p TokenBucket) scale(tick time.Duration) (*bucket, bool) {
	if p.Rate > math.MaxInt64/int64(tick) {
		return nil, false
	}
	unit, drain := int64(p.Per), p.Rate*int64(tick)
	shared := gcd(unit, drain)
	unit, drain = unit/shared, drain/shared
	burst := p.burst()
	if burst > exact || p.MaxDebt > exact || !fits(unit, burst+p.MaxDebt) || drain > exact || unit*(burst+p.MaxDebt) > exact-drain-unit {
		return nil, false
	}
	drains := func(permits int64) int64 { return ceilDiv(unit*permits, drain) }
	if drains(burst+p.MaxDebt) > int64(math.MaxInt64/tick)-1 {
		return nil, false
	}
	return &bucket{
		identity: newIdentity(p, burst, unit),
		capacity: unit * burst,
		largest:  unit * (burst + p.MaxDebt),
		drain:    drain,
		tick:     tick,
		whole:    time.Duration(drains(burst)) * tick,
		empty:    time.Duration(drains(burst+p.MaxDebt)) * tick,
	}, true
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (b *bucket) most() int64 { return b.largest }

// heaviest returns the largest debt in permits for which no arithmetic overflows.
func (b *bucket) heaviest() int64 {
	return b.limit * max(min(1<<61/b.capacity, math.MaxInt64/2/int64(b.whole)), 1)
}

func (b *bucket) kind() string {
	if b.fast {
		return "fast"
	}
	return "bucket"
}

func (b *bucket) numbers() []any {
	numbers := []any{integer(b.capacity), integer(b.drain), integer(b.largest)}
	if b.fast {
		numbers = append(numbers, integer(b.tick.Microseconds()), integer(b.longest))
	}
	return numbers
}

func (b *bucket) told(n []int64, back int64, _ bool) reading {
	return reading{n: [4]int64{n[0] - back}}
}

func (b *bucket) unpack(n int64) (reading, bool) {
	debt, denied := reply.Signed(n)
	return reading{denied: denied, n: [4]int64{debt}}, true
}

func (b *bucket) advance(c *cell, now int64) {
	tick := now / b.tick.Microseconds()
	if elapsed := tick - c.now; elapsed > c.n/b.drain {
		c.n = 0
	} else {
		c.n -= elapsed * b.drain
	}
	c.now = tick
}

func (b *bucket) admits(c *cell, cost int64) bool { return c.n+cost*b.unit <= b.capacity }

func (b *bucket) charge(c *cell, cost int64) reading {
	c.n += cost * b.unit
	return b.read(c, 0)
}

func (b *bucket) term(r reading) int64 { return r.n[0] }

// refund gives back what has not drained yet.
func (b *bucket) refund(c *cell, term, cost, part int64, at moment) bool {
	tick := b.tick.Microseconds()
	back := undrained(b.left(term, c.now-at.soonest/tick), b.left(term, c.now-at.latest/tick), cost*b.unit, c.n, b.unit)
	if back == 0 {
		return false
	}
	if part <= back/b.unit {
		back = part * b.unit
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
		younger := ceilDiv(debt-min(most, cost), unit) * unit
		least = max(debt-younger, least)
	}
	return min(least, cost)
}

func (b *bucket) owe(c *cell, permits int64) (forgiven int64) {
	more := max(b.largest-c.n, 0)
	if permits <= more/b.unit {
		more = permits * b.unit
	}
	c.n += more
	return permits - more/b.unit
}

// left returns what remains of a debt after some ticks.
func (b *bucket) left(debt, ticks int64) int64 {
	if ticks > debt/b.drain {
		return 0
	}
	return debt - max(ticks, 0)*b.drain
}

func (b *bucket) read(c *cell, _ int64) reading { return reading{n: [4]int64{c.n}} }

func (b *bucket) age(r reading, passed int64) reading {
	r.n[0] = b.left(r.n[0], passed/b.tick.Microseconds())
	return r
}

func (*bucket) lasts(_ reading) (left int64, ends bool) { return 0, false }

func (b *bucket) state(r reading, cost int64) State {
	debt := r.n[0]
	s := State{
		Policy:     b.name,
		Allowed:    !r.denied,
		Limit:      b.limit,
		Remaining:  max(b.capacity-debt, 0) / b.unit,
		Window:     b.whole,
		ResetAfter: b.drained(debt),
	}
	if s.Remaining < s.Limit {
		s.NextAfter = b.drained(debt + (s.Remaining+1)*b.unit - b.capacity)
	}
	if r.denied {
		s.RetryAfter = b.drained(debt + cost*b.unit - b.capacity)
	}
	return s
}

func (b *bucket) drained(units int64) time.Duration {
	return time.Duration(ceilDiv(units, b.drain)) * b.tick
}

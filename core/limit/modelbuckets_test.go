package limit_test

import (
	"cmp"
	"math"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// bucket owes a debt that drains. A permit is a whole number of units, and so is what drains in a
// tick. A tick is a millisecond up to one permit a millisecond, and otherwise a microsecond. If the
// debt could then not be counted exactly, the tick is longer.
type bucket struct {
	broken

	burst, most int64 // of permits; most is with the MaxDebt
	unit, drain int64
	step        int64
	lives       bool // its clock is how long its key lives

	debt, at int64 // in units, and ticks
}

func (b *bucket) become(p limit.Policy) {
	of := p.(limit.TokenBucket)
	b.burst = cmp.Or(of.Burst, of.Rate)
	b.most = b.burst + of.MaxDebt
	exact := func(step int64) bool {
		b.step = step
		b.unit, b.drain = reduced(int64(of.Per), of.Rate*step*1000)
		return float64(b.unit)*float64(b.most)+float64(b.drain)+float64(b.unit) <= 1<<53
	}
	b.lives = of.Rate <= of.Per.Milliseconds() && exact(millisecond)
	if !b.lives && !exact(1) && !exact(millisecond) {
		exact(1000 * millisecond)
	}
}

// reduced divides two numbers by what they have in common.
func reduced(a, b int64) (int64, int64) {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x, b / x
}

func (b *bucket) tick() int64 { return b.step }

func (b *bucket) limit() int64 { return b.burst }

func (b *bucket) window(int64) time.Duration {
	ticks := (b.burst*b.unit + b.drain - 1) / b.drain
	return time.Duration(ticks*b.step) * time.Microsecond
}

// owed is the debt at that time.
func (b *bucket) owed(now int64) int64 {
	ticks := now/b.step - b.at
	switch {
	case ticks > b.debt/b.drain:
		return 0
	case -ticks > (math.MaxInt64/2-b.debt)/b.drain: // the clock was set back far
		return math.MaxInt64 / 2
	}
	return b.debt - ticks*b.drain
}

func (b *bucket) free(now int64) int64 { return floorDiv(b.burst*b.unit-b.owed(now), b.unit) }

func (b *bucket) idle(now int64) bool { return b.owed(now) == 0 }

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

func (b *keptBucket) tick() int64 { return 1 }

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

func (b *bucket) clone() algorithm { c := *b; return &c }

func (b *keptBucket) clone() algorithm { c := *b; return &c }

package limit

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// permits were charged together.
type permits struct {
	g       *grant // that charged them
	at, end int64
	size    int64
	left    atomic.Int64 // far below 0 once they have ended
	served  atomic.Int64
	given   []atomic.Uint64 // a bit for each that was given back
	timer   *time.Timer
}

const ended = math.MinInt64 / 2

// take takes permits, and says which of them, and how many are left.
func (p *permits) take(now, cost int64) (index, left int64, ok bool) {
	if now >= p.end || p.served.Load() >= 64*int64(len(p.given)) { // what has no bit could not be given back
		return 0, 0, false
	}
	for {
		left := p.left.Load()
		if left < cost {
			return 0, 0, false
		}
		if p.left.CompareAndSwap(left, left-cost) {
			return p.served.Add(1) - 1, left - cost, true
		}
	}
}

// close ends the permits, and says how many are left.
func (p *permits) close() int64 { return max(p.left.Swap(ended), 0) }

// giveBack ends the permits and gives back those that are left.
func (p *permits) giveBack(ctx context.Context) error {
	n := p.close()
	if n == 0 {
		return nil
	}
	l := p.g.of
	rest := newLocalGrant(p.g.subject, n, len(l.rules))
	rest.of, rest.asked, rest.answered = l, p.g.asked, p.g.answered
	copy(rest.readings, p.g.readings)
	_, err := l.giveBack(ctx, rest)
	l.memory.changed(p.g.subject)
	return err
}

// refund gives the permits of a decision back to those that were charged with them.
func (p *permits) refund(index, cost int64) error {
	word := index / 64
	if word >= int64(len(p.given)) { // several callers took the last bit at once
		return refuse("its prepaid permits were given back too often")
	}
	bit := uint64(1) << (index % 64)
	if p.given[word].Or(bit)&bit != 0 {
		return refuse("it was given back before")
	}
	if p.left.Add(cost) < 0 {
		return refuse("its prepaid permits have ended")
	}
	return nil
}

package limit

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// permits were charged together.
type permits struct {
	balance

	g       *grant // that charged them
	at, end int64
	size    int64
	counted atomic.Int64    // how many of those that were granted the rate counts already
	given   []atomic.Uint64 // a bit for each that was given back
	timer   *time.Timer
}

// take takes permits, and says which of them, and how many are left.
func (p *permits) take(now, cost int64) (index, left int64, ok bool) {
	if now >= p.end {
		return 0, 0, false
	}
	return p.balance.take(cost, 64*int64(len(p.given))) // what has no bit could not be given back
}

// demand is how many were granted since it was last asked for.
func (p *permits) demand() int64 {
	granted := p.granted()
	return granted - p.counted.Swap(granted)
}

// balance is how many permits were granted and how many are left, in one word: a grant is one change of it. It has no
// more than 2^31 of either.
type balance struct{ word atomic.Int64 }

// ended stands for what is left once permits have ended.
const ended = math.MaxUint32

func (b *balance) granted() int64 { return b.word.Load() >> 32 }

func (b *balance) left() int64 { return left(b.word.Load()) }

func left(word int64) int64 {
	if left := word & ended; left != ended {
		return left
	}
	return 0
}

// take fails if so many are not left, or if more than most were granted then.
func (b *balance) take(cost, most int64) (index, left int64, ok bool) {
	for {
		word := b.word.Load()
		index, left = word>>32, word&ended
		if left == ended || left < cost || index+cost > most {
			return 0, 0, false
		}
		if b.word.CompareAndSwap(word, word+cost<<32-cost) {
			return index, left - cost, true
		}
	}
}

// add adds permits, unless they have ended.
func (b *balance) add(n int64) bool {
	for {
		word := b.word.Load()
		if word&ended == ended {
			return false
		}
		if b.word.CompareAndSwap(word, word+n) {
			return true
		}
	}
}

// close ends the permits, and says how many were left.
func (b *balance) close() int64 {
	return left(b.word.Or(ended))
}

// giveBack ends the permits and gives back those that are left.
func (p *permits) giveBack(ctx context.Context) error {
	n := p.close()
	if n == 0 {
		return nil
	}
	l := p.g.of
	rest := newGrant(p.g.subject, n, len(l.rules))
	rest.of, rest.asked, rest.answered = l, p.g.asked, p.g.answered
	copy(rest.readings, p.g.readings)
	_, err := l.giveBack(ctx, rest)
	l.memory.changed(p.g.subject)
	return err
}

// refund gives the permits of a decision back to those that were charged with them.
func (p *permits) refund(index, cost int64) error {
	bit := uint64(1) << (index % 64)
	if p.given[index/64].Or(bit)&bit != 0 {
		return refuse("it was given back before")
	}
	if !p.add(cost) {
		return refuse("its prepaid permits have ended")
	}
	return nil
}

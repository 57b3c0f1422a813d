package prepaid

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
)

// Charge is permits that were charged together.
type Charge interface {
	// Taken returns the request by which they were charged, with its readings.
	Taken() *kind.Request
	// GiveBack gives back those that are left. It returns nil if they have come back by themselves.
	GiveBack(ctx context.Context, left int64) error
}

// Permits are permits that were charged together and are granted in process.
type Permits struct {
	balance

	// Charge is what they were charged by.
	Charge Charge

	of      *Accounts
	at, end int64
	size    int64
	counted atomic.Int64    // how many granted permits demand has returned so far
	given   []atomic.Uint64 // one bit for each permit that was given back
	timer   *time.Timer

	returning chan struct{} // has room for one, which gives them back
}

// take takes cost permits. It returns the index of the first, and how many are left.
func (p *Permits) take(now, cost int64) (index, left int64, ok bool) {
	if now >= p.end {
		return 0, 0, false
	}
	return p.balance.take(cost, 64*int64(len(p.given))) // a permit without a bit could not be given back
}

// demand returns how many permits were granted since the last call of demand.
func (p *Permits) demand() int64 {
	granted, _, _ := p.read()
	return granted - p.counted.Swap(granted)
}

// balance is how many permits were granted and how many are left, both in one word, so
// that a grant is one atomic change. Each is at most 2^31.
type balance struct{ word atomic.Int64 }

// ended replaces the number of permits left when the permits have ended.
const ended = math.MaxUint32

func (b *balance) read() (granted, left, word int64) {
	word = b.word.Load()
	granted, left = word>>32, word&ended
	if left == ended {
		left = 0
	}
	return granted, left, word
}

func (b *balance) left() int64 {
	_, left, _ := b.read()
	return left
}

// take fails if fewer permits are left, or if more than most would be granted in all.
func (b *balance) take(cost, most int64) (index, left int64, ok bool) {
	for {
		granted, left, word := b.read()
		if left < cost || granted+cost > most {
			return 0, 0, false
		}
		if b.word.CompareAndSwap(word, word+cost<<32-cost) {
			return granted, left - cost, true
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

// close ends the permits and returns how many were left.
func (b *balance) close() int64 {
	if left := b.word.Or(ended) & ended; left != ended {
		return left
	}
	return 0
}

// giveBack ends the permits and gives back in Redis those that are left. If that is under
// way, it waits for it.
func (p *Permits) giveBack(ctx context.Context) error {
	select {
	case p.returning <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.returning }()
	defer p.of.permits.remove(p)
	if left := p.close(); left > 0 {
		return p.Charge.GiveBack(ctx, left)
	}
	return nil
}

// Size returns how many were charged.
func (p *Permits) Size() int64 { return p.size }

// Left returns how many are left. On nil Permits it returns 0.
func (p *Permits) Left() int64 {
	if p == nil {
		return 0
	}
	return p.left()
}

// Lasts returns for how long they are granted.
func (p *Permits) Lasts() time.Duration { return time.Duration(p.end - p.of.now()) }

// These say why permits cannot be given back.
var (
	errGivenBack = errors.New("it was given back before")
	errEnded     = errors.New("its prepaid permits have ended")
)

// Refund returns a decision's permits to the permits that were charged together.
func (p *Permits) Refund(index, cost int64) error {
	bit := uint64(1) << (index % 64)
	if p.given[index/64].Or(bit)&bit != 0 {
		return errGivenBack
	}
	if !p.add(cost) {
		return errEnded
	}
	return nil
}

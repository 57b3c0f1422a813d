package main

import (
	"context"
	"sync"
	"time"
)

// Blocks gives out numbers of a sequence from blocks that it takes in one round
// trip each. Every number is given out once. Those of one Blocks grow; between
// instances they interleave, but a number is larger than every number that was
// given out anywhere more than Lease before. What is left of a block when its
// lease or its day is over, or the process ends, is a gap. It is safe for
// concurrent use; callers wait for each other while a block is taken.
type Blocks struct {
	Sequence *Sequence
	Size     int64         // of a block; less than 1 means 1
	Lease    time.Duration // of a block; 0 means one number of each

	mu    sync.Mutex
	block taken // First is the number that is given out next
	left  int64
	asked time.Time
}

// Next is the next number; every Size-th time it takes a round trip. A block that
// the day does not hold whole is ErrFull.
func (b *Blocks) Next(ctx context.Context) (Number, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left == 0 || b.over() {
		asked, size := time.Now(), max(b.Size, 1)
		block, err := b.Sequence.take(ctx, size)
		if err != nil {
			return Number{}, err
		}
		b.block, b.left, b.asked = block, size, asked
	}
	n := Number{b.block.Day, b.block.First}
	b.block.First++
	b.left--
	return n, nil
}

// over says that the block's lease or its day has ended, early rather than late:
// the time is counted from before the question.
func (b *Blocks) over() bool {
	held := time.Since(b.asked)
	server := time.UnixMilli(b.block.Now + 1).Add(held)
	return held >= b.Lease || dayOf(server, b.Sequence.zone) > b.block.Day
}

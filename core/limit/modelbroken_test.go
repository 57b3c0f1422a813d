package limit_test

import "slices"

// What Redis holds may be broken. An operator has edited it, it was restored without its time to
// live, or the clock was set back, so that it lies in the future. Such a state counts as the largest
// that it can be, from the moment at which it is read. A request that may charge it repairs it, also
// if it is denied; a question does not.

// mender is an algorithm that knows what a broken state means.
type mender interface {
	// breaks is called when the key has lost its time to live, or has far too long a one.
	breaks()
	// mends makes the state whole, and returns what undoes it. It does nothing to a state that is
	// not broken.
	mends(now int64) (undo func())
}

// broken is what menders have in common.
type broken struct{ is bool }

func (b *broken) breaks() { b.is = true }

// mended calls f for a state that is broken. whole is the state.
func mended[T any](is bool, whole *T, f func()) (undo func()) {
	if !is {
		return func() {}
	}
	was := *whole
	f()
	return func() { *whole = was }
}

func (b *bucket) mends(now int64) func() {
	lost := b.is && b.lives // another has its clock in its value
	return mended(lost || b.owed(now) > b.most*b.unit, b, func() {
		b.debt, b.at, b.is = b.most*b.unit, now/b.step, false
	})
}

func (b *keptBucket) breaks() {} // its clock is in its value

func (b *keptBucket) mends(now int64) func() {
	return mended(b.since > now || b.owed(now) > b.by.most*millionths, b, func() {
		b.charged, b.since = min(b.charged, b.by.most*millionths), now
	})
}

func (w *window) mends(now int64) func() {
	return mended(w.is || w.ends > w.next(now), w, func() { w.ends, w.is = w.next(now), false })
}

func (c *calendar) mends(now int64) func() {
	_, till := c.around(now)
	return mended(c.is || c.ends > till, c, func() { c.ends, c.is = till, false })
}

func (s *sliding) mends(now int64) func() {
	floor := now - now%millisecond
	return mended(s.is || s.from > floor, s, func() { s.from, s.is = floor, false })
}

func (l *slidingLog) breaks() {}

func (l *slidingLog) mends(now int64) func() {
	last := len(l.entries) - 1
	return mended(last >= 0 && l.entries[last] > now, l, func() {
		l.entries = slices.Clone(l.entries)
		for i, at := range l.entries {
			l.entries[i] = min(at, now)
		}
	})
}

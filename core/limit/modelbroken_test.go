package limit_test

// What Redis holds may be broken: edited by an operator, or stored without its time to live. Such a
// state counts as the largest that it can be, from the moment at which it is read. A request that
// may charge it repairs it, also if it is denied; a question does not.

// mender is an algorithm that knows what a key without its time to live means.
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
func mended[T any](b *broken, whole *T, f func()) (undo func()) {
	if !b.is {
		return func() {}
	}
	was := *whole
	f()
	b.is = false
	return func() { *whole = was }
}

func (b *bucket) mends(now int64) func() {
	if b.step != millisecond { // its clock is not the key's
		b.is = false
	}
	return mended(&b.broken, b, func() { b.debt, b.at = b.most*b.unit, now/b.step })
}

func (w *window) mends(now int64) func() {
	return mended(&w.broken, w, func() { w.ends = w.next(now) })
}

func (c *calendar) mends(now int64) func() {
	return mended(&c.broken, c, func() { _, c.ends = c.around(now) })
}

func (s *sliding) mends(now int64) func() {
	return mended(&s.broken, s, func() {
		s.from = now - now%millisecond
	})
}

package limit

import (
	"errors"
	"time"

	"github.com/neap-go/neap/core/internal/reply"
)

// window is a fixed window. A reading is {used, rest of the window in ms}.
type window struct {
	identity
	length  int64 // in milliseconds
	largest int64 // the most that can be used: the limit and MaxDebt
	packed  bool
}

func (p FixedWindow) compile() (rule, error) {
	if err := errors.Join(
		checkPositive("Limit", p.Limit),
		checkWhole("Window", p.Window, time.Millisecond, "milliseconds"),
		checkDebt(p.MaxDebt),
	); err != nil {
		return nil, err
	}
	largest, err := owing(p.Limit, p.MaxDebt)
	if err != nil {
		return nil, err
	}
	length := p.Window.Milliseconds()
	return &window{
		identity: newIdentity(p, p.Limit, 1),
		length:   length,
		largest:  largest,
		packed:   fits(largest+1, length+1),
	}, nil
}

// owing returns the sum of a limit and the debt beyond it.
func owing(limit, debt int64) (largest int64, err error) {
	if limit > exact || debt > exact || !fits(limit+debt, 2) {
		return 0, errInexact("Limit and MaxDebt", "use a Limit and a MaxDebt that are below 2^52 together")
	}
	return limit + debt, nil
}

func (w *window) most() int64 { return w.largest }

func (w *window) packs() bool { return w.packed }

func (*window) kind() string { return "window" }

func (w *window) numbers() []any {
	return []any{integer(w.limit), integer(w.length), integer(w.largest)}
}

func (w *window) told(n []int64, back int64, _ bool) reading {
	return reading{n: [4]int64{n[0] - back, n[1]}}
}

func (w *window) unpack(n int64) (reading, bool) {
	packed, denied := reply.Signed(n)
	return reading{denied: denied, n: [4]int64{packed % (w.largest + 1), packed / (w.largest + 1)}}, true
}

func (w *window) advance(c *cell, now int64) {
	c.now = now / 1000
	if c.now-c.from >= w.length {
		c.n = 0
	}
}

func (w *window) admits(c *cell, cost int64) bool { return c.n+cost <= w.limit }

func (w *window) charge(c *cell, cost int64) reading {
	if c.n == 0 {
		c.from = c.now
	}
	c.n += cost
	return w.read(c, 0)
}

func (w *window) term(r reading) int64 { return r.n[1] }

func (w *window) refund(c *cell, term, _, back int64, at moment) bool {
	if c.n == 0 || !at.in(c.from+w.length, term, w.length) {
		return false
	}
	c.n = max(c.n-back, 0)
	return true
}

func (w *window) owe(c *cell, permits int64) (forgiven int64) {
	more := max(min(w.largest-c.n, permits), 0)
	if c.n == 0 {
		c.from = c.now
	}
	c.n += more
	return permits - more
}

func (w *window) read(c *cell, _ int64) reading {
	if c.n == 0 {
		return reading{}
	}
	return reading{n: [4]int64{c.n, w.length - (c.now - c.from)}}
}

func (w *window) age(r reading, passed int64) reading {
	if r.n[1] -= passed / 1000; r.n[1] <= 0 {
		return reading{denied: r.denied}
	}
	return r
}

func (*window) lasts(r reading) (left int64, ends bool) {
	return r.n[1] * int64(time.Millisecond), true
}

func (w *window) state(r reading, _ int64) State {
	used, rest := r.n[0], time.Duration(r.n[1])*time.Millisecond
	s := State{
		Policy:    w.name,
		Allowed:   !r.denied,
		Limit:     w.limit,
		Remaining: max(w.limit-used, 0),
		Window:    time.Duration(w.length) * time.Millisecond,
	}
	if used > 0 {
		s.NextAfter, s.ResetAfter = rest, rest
	}
	if r.denied {
		s.RetryAfter = rest
	}
	return s
}

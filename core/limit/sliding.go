package limit

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/neap-go/neap/core/internal/reply"
)

// sliding is a sliding window of two counters. A reading is {last, current, rest of the
// running window in ms}. In use are last·rest/length + current. They are compared in
// permits times milliseconds, so that all numbers are whole.
type sliding struct {
	identity
	length  int64 // in milliseconds
	largest int64 // the most that a counter can hold: the limit, or that of other processes
	packed  bool
}

func (p SlidingWindow) compile() (rule, error) {
	if err := errors.Join(
		checkPositive("Limit", p.Limit),
		checkWhole("Window", p.Window, time.Millisecond, "milliseconds"),
	); err != nil {
		return nil, err
	}
	length := p.Window.Milliseconds()
	if p.Window > math.MaxInt64/2 {
		return nil, fmt.Errorf("Window is %v: the figures reach two windows ahead; use at most 146 years", p.Window)
	}
	if !fits(p.Limit, 4) || !fits(p.Limit+1, p.Limit+1) || !fits(p.Limit, length, 4) {
		return nil, errInexact("Limit and Window", "use a smaller Limit or Window, or a FixedWindow")
	}
	return &sliding{
		identity: newIdentity(p, p.Limit, 1),
		length:   length,
		largest:  p.Limit,
		packed:   fits(p.Limit+1, p.Limit+1, length+1),
	}, nil
}

func (s *sliding) most() int64 { return s.largest }

func (s *sliding) packs() bool { return s.packed }

func (*sliding) kind() string { return "sliding" }

func (s *sliding) numbers() []any {
	return []any{integer(s.limit), integer(s.length), integer(s.largest)}
}

func (s *sliding) told(n []int64, back int64, _ bool) reading {
	return reading{n: [4]int64{n[0], n[1] - back, n[2]}}
}

func (s *sliding) unpack(n int64) (reading, bool) {
	packed, denied := reply.Signed(n)
	counters, rest := packed/(s.length+1), packed%(s.length+1)
	return reading{denied: denied, n: [4]int64{counters / (s.limit + 1), counters % (s.limit + 1), rest}}, true
}

func (s *sliding) advance(c *cell, now int64) {
	c.now = now / 1000
	if c.now-c.from >= s.length {
		c.from, c.n, c.m = c.from+s.length, 0, c.n
	}
	if c.now-c.from >= s.length {
		c.m = 0
	}
	if c.n == 0 && c.m == 0 {
		c.from = c.now
	}
}

func (s *sliding) rest(c *cell) int64 { return s.length - (c.now - c.from) }

func (s *sliding) admits(c *cell, cost int64) bool {
	return c.m*s.rest(c)+(c.n+cost)*s.length <= s.limit*s.length
}

func (s *sliding) charge(c *cell, cost int64) reading {
	c.n += cost
	return s.read(c, 0)
}

func (s *sliding) term(r reading) int64 { return r.n[2] }

func (s *sliding) refund(c *cell, term, _, back int64, at moment) bool {
	end, counter := c.from+s.length, &c.n
	if at.in(c.from, term, s.length) {
		end, counter = c.from, &c.m
	}
	if *counter == 0 || !at.in(end, term, s.length) {
		return false
	}
	*counter = max(*counter-back, 0)
	return true
}

func (s *sliding) owe(c *cell, permits int64) (forgiven int64) {
	room := (s.limit*s.length-c.m*s.rest(c))/s.length - c.n
	more := max(min(room, permits), 0)
	c.n += more
	return permits - more
}

func (s *sliding) read(c *cell, _ int64) reading {
	if c.n == 0 && c.m == 0 {
		return reading{}
	}
	return reading{n: [4]int64{c.m, c.n, s.rest(c)}}
}

func (s *sliding) age(r reading, passed int64) reading {
	r.n[2] -= passed / 1000
	for range 2 {
		if r.n[2] <= 0 {
			r.n[0], r.n[1], r.n[2] = r.n[1], 0, r.n[2]+s.length
		}
	}
	if r.n[0] == 0 && r.n[1] == 0 {
		return reading{denied: r.denied}
	}
	return r
}

func (*sliding) lasts(r reading) (left int64, ends bool) {
	return r.n[2] * int64(time.Millisecond), true
}

func (s *sliding) state(r reading, cost int64) State {
	last, current, rest := r.n[0], r.n[1], r.n[2]
	st := State{
		Policy:    s.name,
		Allowed:   !r.denied,
		Limit:     s.limit,
		Remaining: max(s.limit-current-ceilDiv(last*rest, s.length), 0),
		Window:    time.Duration(s.length) * time.Millisecond,
	}
	switch {
	case current > 0:
		st.ResetAfter = time.Duration(rest+s.length) * time.Millisecond
	case last > 0:
		st.ResetAfter = time.Duration(rest) * time.Millisecond
	}
	if st.Remaining < st.Limit {
		st.NextAfter = s.wait(r, st.Remaining+1)
	}
	if r.denied {
		st.RetryAfter = s.wait(r, cost)
	}
	return st
}

// wait returns how long until cost is admitted, if no other request is made. In the
// running window, room comes as the last window's share shrinks; after it, as the running
// window's share does.
func (s *sliding) wait(r reading, cost int64) time.Duration {
	last, current, rest := r.n[0], r.n[1], r.n[2]
	fading, room, left, passed := last, s.limit-current-cost, rest, int64(0)
	if room < 0 {
		fading, room, left, passed = current, s.limit-cost, s.length, rest
	}
	if fading > 0 {
		passed += max(left-room*s.length/fading, 0)
	}
	return time.Duration(passed) * time.Millisecond
}

package limit

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/internal/reply"
)

// longestPeriod is at least as long as any month.
const longestPeriod = 32 * 24 * time.Hour

// calendar is a calendar window. A reading is {used, rest of the window in ms, length
// of the window in ms}.
type calendar struct {
	identity
	around  func(time.Time) (starts [4]time.Time) // the starts of four windows in a row; the time is in the second
	largest int64                                 // the most that can be used: the limit and MaxDebt
	packed  bool                                  // the reply fits into one number
	varies  bool                                  // windows differ in length: months do

	ahead atomic.Int64 // milliseconds by which the clock of Redis is ahead of this one, if it was found far off
	known atomic.Pointer[bounds]
}

// bounds are the starts of three windows in a row, and the end of the last, in
// milliseconds.
type bounds struct {
	at      [4]int64
	numbers []any // as limit_calendar.lua takes them
}

func (p CalendarWindow) compile() (rule, error) {
	in, fault := p.location()
	err := errors.Join(checkPositive("Limit", p.Limit), checkDebt(p.MaxDebt), fault)
	if periods[p.Every] == "" {
		err = errors.Join(err, fmt.Errorf("Every is %d: use Hour, Day, Week or Month", p.Every))
	}
	if err != nil {
		return nil, err
	}
	largest, err := owing(p.Limit, p.MaxDebt)
	if err != nil {
		return nil, err
	}
	return &calendar{
		identity: newIdentity(p, p.Limit, 1),
		around:   civil{p.Every, in}.around,
		largest:  largest,
		packed:   fits(largest+1, 3, longestPeriod.Milliseconds()),
		varies:   p.Every == Month,
	}, nil
}

// location loads the zone by its name, because the name is part of the key and every
// process must find the same zone.
func (p CalendarWindow) location() (*time.Location, error) {
	const remedy = `use time.LoadLocation("Area/City"), or nil for UTC`
	name := p.zone()
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("Location is %q, which is another zone on another machine: %s", name, remedy)
	}
	in, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("Location is %q: %w: %s; where the machine has no zones, import time/tzdata", name, err, remedy)
	}
	now := time.Now()
	for month := -12; p.Location != nil && month <= 12; month++ {
		t := now.AddDate(0, month, 0)
		_, given := t.In(p.Location).Zone()
		if _, found := t.In(in).Zone(); given != found {
			return nil, fmt.Errorf("Location is %q, and not the IANA zone of that name: %s", name, remedy)
		}
	}
	return in, nil
}

// boundsAt returns the bounds around a time in milliseconds, which is in the second
// window.
func (w *calendar) boundsAt(now int64) *bounds {
	if b := w.known.Load(); b != nil && b.at[1] <= now && now < b.at[2] {
		return b
	}
	b := &bounds{numbers: []any{integer(w.limit)}}
	for i, start := range w.around(time.UnixMilli(now)) {
		b.at[i] = start.UnixMilli()
		b.numbers = append(b.numbers, integer(b.at[i]))
	}
	b.numbers = append(b.numbers, integer(w.largest))
	w.known.Store(b)
	return b
}

func (w *calendar) bounds() *bounds { return w.boundsAt(time.Now().UnixMilli() + w.ahead.Load()) }

// seen stores what time it is in Redis. It is called if that time is in none of the
// windows that were sent.
func (w *calendar) seen(now int64) { w.ahead.Store(now - time.Now().UnixMilli()) }

// seen stores the time of Redis for every calendar of the limiter.
func (l *Limiter) seen(now int64) {
	for _, r := range l.rules {
		if w, is := r.(*calendar); is {
			w.seen(now)
		}
	}
}

// unpack assumes that the current windows are those that were sent. If a boundary has
// passed since, only the length can be wrong.
func (w *calendar) unpack(n int64) (reading, bool) {
	n, denied := reply.Signed(n)
	b := w.bounds()
	which, packed := n%3, n/3
	return reading{denied: denied, n: [4]int64{packed % (w.largest + 1), packed / (w.largest + 1), b.at[which+1] - b.at[which]}}, true
}

func (w *calendar) packs() bool { return w.packed }

func (*calendar) kind() string { return "calendar" }

func (w *calendar) numbers() []any { return w.bounds().numbers }

func (w *calendar) told(n []int64, back int64, _ bool) reading {
	return reading{n: [4]int64{n[0] - back, n[1], n[2]}}
}

func (w *calendar) most() int64 { return w.largest }

func (w *calendar) advance(c *cell, now int64) {
	c.now = now / 1000
	if c.m = min(c.m, w.boundsAt(c.now).at[2]); c.now >= c.m {
		c.n = 0
	}
}

func (w *calendar) admits(c *cell, cost int64) bool { return c.n+cost <= w.limit }

func (w *calendar) charge(c *cell, cost int64) reading {
	if c.n == 0 {
		c.m = w.boundsAt(c.now).at[2]
	}
	c.n += cost
	return w.read(c, 0)
}

func (w *calendar) term(r reading) int64 { return r.n[1] }

func (w *calendar) refund(c *cell, term, _, back int64, at moment) bool {
	b := w.boundsAt(c.now)
	if c.n == 0 || !at.in(c.m, term, (b.at[2]-b.at[1])/2) {
		return false
	}
	c.n = max(c.n-back, 0)
	return true
}

func (w *calendar) owe(c *cell, permits int64) (forgiven int64) {
	more := max(min(w.largest-c.n, permits), 0)
	if c.n == 0 {
		c.m = w.boundsAt(c.now).at[2]
	}
	c.n += more
	return permits - more
}

func (w *calendar) read(c *cell, _ int64) reading {
	b := w.boundsAt(c.now)
	r := reading{n: [4]int64{c.n, 0, b.at[2] - b.at[1]}}
	if c.n > 0 {
		r.n[1] = c.m - c.now
	}
	return r
}

func (w *calendar) age(r reading, passed int64) reading {
	if r.n[1] -= passed / 1000; r.n[1] <= 0 {
		r.n[0], r.n[1] = 0, 0
	}
	return r
}

func (*calendar) lasts(r reading) (left int64, ends bool) {
	return r.n[1] * int64(time.Millisecond), true
}

func (w *calendar) state(r reading, _ int64) State {
	used, rest := r.n[0], time.Duration(r.n[1])*time.Millisecond
	s := State{
		Policy:    w.name,
		Allowed:   !r.denied,
		Limit:     w.limit,
		Remaining: max(w.limit-used, 0),
	}
	if !w.varies {
		s.Window = time.Duration(r.n[2]) * time.Millisecond
	}
	if used > 0 {
		s.NextAfter, s.ResetAfter = rest, rest
	}
	if r.denied {
		s.RetryAfter = rest
	}
	return s
}

func (p CalendarWindow) zone() string {
	if p.Location == nil {
		return "UTC"
	}
	return p.Location.String()
}

func (p CalendarWindow) signature() string {
	return fmt.Sprintf("calendar-%d-%s", p.Limit, p.place()) + debt(p.MaxDebt)
}

// place returns the part of a signature that does not depend on the Limit.
func (p CalendarWindow) place() string {
	return periods[p.Every] + "-" + strings.NewReplacer("/", ".", "+", "_").Replace(p.zone())
}

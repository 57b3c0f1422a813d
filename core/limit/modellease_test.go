package limit_test

import (
	"cmp"
	"math"
	"slices"

	"github.com/neap-go/neap/core/limit"
)

// leased is a window whose costs are estimates with a lease. While the process lives that took
// one, its lease does not end.
type leased struct {
	algorithm

	counter *counter // of the algorithm
	lease   int64
	runs    bool        // the window goes on although all of it was taken back
	known   int64       // until when estimates are known: they end just before their window, so that none comes back into the next one
	lingers bool        // a key is there for the whole millisecond at which it ends
	all     []*estimate // by the ends of their leases
}

// estimate is the mark of a leased window.
type estimate struct {
	cost  int64
	until int64 // when its window ends
	ends  int64 // when its lease ends
	gone  bool  // settled or taken back
	back  bool  // taken back, or forgotten
}

func newLeased(s spec) *leased {
	l := &leased{lease: s.lease.Microseconds()}
	switch s.base.(type) {
	case limit.FixedWindow:
		of := new(window)
		l.algorithm, l.counter = of, &of.counter
	case limit.CalendarWindow:
		of := new(calendar)
		l.algorithm, l.counter = of, &of.counter
	}
	return l
}

func (l *leased) take(now, n int64) mark {
	ends := l.counter.ends
	goesOn := l.runs && now < ends
	if l.counter.idle(now) {
		l.all = nil
	}
	if now >= l.known {
		for _, e := range l.all {
			e.gone, e.back = true, true
		}
	}
	e := &estimate{cost: n, until: l.algorithm.take(now, n).(int64), ends: math.MaxInt64}
	if goesOn {
		l.counter.ends, e.until = ends, ends
	}
	now -= now % millisecond
	l.runs, l.known = false, max(e.until-2*millisecond, now)
	if l.lingers && l.known > now { // or it is deleted at once
		l.known += millisecond
	}
	l.all = append(l.all, e)
	return e
}

// crash has the process end that took an estimate at this moment.
func (l *leased) crash(now int64, of mark) {
	of.(*estimate).ends = now - now%millisecond + l.lease
	slices.SortStableFunc(l.all, func(a, b *estimate) int { return cmp.Compare(a.ends, b.ends) })
}

// lapse takes back up to 100 estimates whose lease has ended, for a request that finds no room. It
// returns what undoes it.
func (l *leased) lapse(now, cost int64) (undo func()) {
	used, all, runs := l.counter.used, slices.Clone(l.all), l.runs
	if l.counter.idle(now) || cost <= l.counter.free(now) || now >= l.known {
		return func() {}
	}
	var back []*estimate
	for _, e := range l.all {
		if !e.gone && e.until == l.counter.ends && e.ends <= now && len(back) < 100 {
			back = append(back, e)
			l.counter.used = max(l.counter.used-e.cost, 0)
			e.gone, e.back, l.runs = true, true, true
		}
	}
	return func() {
		l.counter.used, l.all, l.runs = used, all, runs
		for _, e := range back {
			e.gone, e.back = false, false
		}
	}
}

// settle replaces an estimate by what was used. If it was taken back, all that was used is charged.
func (l *leased) settle(now int64, e *estimate, actual int64) (forgiven int64) {
	more := actual - e.cost
	if now < e.until && (e.back || now >= l.known) {
		more = actual
	}
	e.gone = true
	switch ends := l.counter.ends; {
	case more > 0:
		goesOn := l.runs && now < ends
		if forgiven = l.owe(now, more); goesOn {
			l.counter.ends = ends
		}
		return forgiven
	case more < 0:
		l.back(now, e.until, -more)
	}
	return 0
}

// back gives back to the counter. A window is over if nothing is left in it.
func (l *leased) back(now, until, n int64) (given bool) {
	given = l.counter.giveBack(now, until, n)
	l.runs = l.runs && l.counter.used > 0
	return given
}

func (l *leased) giveBack(now int64, of mark, _ int64) (given bool) {
	e := of.(*estimate)
	if e.gone || now >= e.until || now >= l.known {
		return false
	}
	e.gone = true
	return l.back(now, e.until, e.cost)
}

func (*leased) clone() algorithm { panic("the model of leases cannot be copied") }

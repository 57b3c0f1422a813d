package limit_test

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

// TestTable compares each kind of policy, and sets of them, with each feature and on each driver,
// with the model: every figure of every decision, on a clock that the test sets.
func TestTable(t *testing.T) {
	t.Parallel()
	failfast := flag.Lookup("test.failfast").Value.String() == "true" // which does not end parallel tests
	var failed atomic.Bool
	for _, d := range drivers {
		for _, f := range features {
			for _, row := range append(names(kinds), "set") {
				if slices.Contains(f.without, row) {
					continue
				}
				t.Run(d.name+"/"+f.name+"/"+row, func(t *testing.T) {
					t.Parallel()
					if failfast && failed.Load() {
						return
					}
					t.Cleanup(func() { failed.Store(failed.Load() || t.Failed()) })
					inBubble := d.before(t)
					rng := redistest.Rand(t)
					synctest.Test(t, func(t *testing.T) {
						all := inBubble(t)
						for i := range max(redistest.Steps(10_000)/100, 1) {
							w := newWalk(t, rng, d, f, f.specs(rng, row, rng.IntN(6)))
							w.open(all, fmt.Sprint("w", i))
							for range 50 {
								w.step()
							}
							w.end()
						}
					})
				})
			}
		}
	}
}

func names(kinds []kind) (all []string) {
	for _, k := range kinds {
		all = append(all, k.name)
	}
	return all
}

// specs makes policies that New accepts.
func (f *feature) specs(rng *rand.Rand, row string, i int) (all []spec) {
	var refused error
	for range 1000 {
		all = nil
		for n := range size(rng, row) {
			k := kinds[rng.IntN(len(kinds))]
			if row != "set" {
				k = kinds[slices.Index(names(kinds), row)]
			}
			if f.changed && k.drains { // the others begin afresh under other numbers
				k = kinds[len(kinds)-1]
			}
			s := k.of(rng, i+n)
			if f.change != nil {
				s = f.change(rng, s)
			}
			if !slices.ContainsFunc(all, func(o spec) bool { return o.base.PolicyName() == s.base.PolicyName() }) {
				all = append(all, s)
			}
		}
		if _, refused = limit.NewLocal("n", policiesOf(all), nil); refused == nil {
			return all
		}
	}
	panic(refused)
}

func size(rng *rand.Rand, row string) int {
	if row == "set" {
		return 2 + rng.IntN(3)
	}
	return 1
}

// walk is a subject that is asked for at random, beside its model.
type walk struct {
	*testing.T

	rng      *rand.Rand
	driver   driver
	feature  feature
	versions [][]spec // of the numbers
	limiters []*limit.Limiter
	model    *model

	by   int // the version that is asked now
	last view
	held []*held
	read time.Time // when the clock of Redis was last read
	told []string  // what happened

	name string
	all  processes
}

// held is a decision that may be given back or settled.
type held struct {
	limit.Decision

	receipt *receipt
	by      int
	at      time.Time
	spent   bool
}

func newWalk(t *testing.T, rng *rand.Rand, d driver, f feature, specs []spec) *walk {
	t.Helper()
	w := &walk{T: t, rng: rng, driver: d, feature: f, versions: [][]spec{specs}, model: newModel(specs, d.local || d.down)}
	for range 2 {
		if f.changed {
			var other []spec
			for _, s := range specs {
				other = append(other, s.scaled(max(s.most()/int64(1+rng.IntN(3)), 1), int64(1+rng.IntN(3))))
			}
			w.versions = append(w.versions, other)
		}
	}
	return w
}

func (w *walk) open(all processes, name string) {
	w.Helper()
	w.name, w.all = name, all
	for i, specs := range w.versions {
		opts := w.feature.opts
		l, err := all.one(name, policiesOf(specs), &opts)
		if i > 0 && (w.driver.local || w.driver.down) { // there, only these share their state
			l, err = w.limiters[0].With(policiesOf(specs)...)
		}
		if err != nil {
			w.Fatal(err)
		}
		w.limiters = append(w.limiters, l)
		if most := capacity(specs); most < math.MaxInt64 {
			if _, err := l.TakeN(w.Context(), "s", most+1); !errors.Is(err, limit.ErrCost) {
				w.Fatalf("a cost above the capacity: got %v, want ErrCost", err)
			}
		}
	}
	w.last, _ = w.model.take(w.now(), 0, true)
}

// end leaves nothing in Redis that lives for ever.
func (w *walk) end() {
	if _, err := w.limiters[0].Reset(w.Context(), "s"); err != nil && !w.driver.down {
		w.Fatal(err)
	}
}

// capacity is the highest cost that is no error.
func capacity(specs []spec) int64 {
	most := int64(math.MaxInt64)
	for _, s := range specs {
		if !s.shadow && !s.once {
			most = min(most, s.most())
		}
	}
	return most
}

// most is the limit of a policy.
func (s spec) most() int64 {
	a := newAlgorithm(s)
	a.become(s.base)
	return a.limit()
}

// now is the time by the clock that decides.
func (w *walk) now() int64 {
	if w.all.clock == nil {
		return time.Now().UnixMicro()
	}
	return w.all.clock.Now().UnixMicro()
}

// asks chooses the process that asks.
func (w *walk) asks(by int) *limit.Limiter {
	w.by = by
	w.model.become(w.versions[by])
	return w.limiters[by]
}

// fail ends the test.
func (w *walk) fail(format string, args ...any) {
	w.Helper()
	for _, s := range w.versions[w.by] {
		w.Logf("%+v, ban %+v", s, s.ban)
	}
	w.Fatalf("%s\n%v", fmt.Sprintf(format, args...), w.told[max(len(w.told)-12, 0):])
}

func (w *walk) note(format string, args ...any) {
	w.told = append(w.told, time.Now().Format("\n02 15:04:05.000000 ")+fmt.Sprintf(format, args...))
}

func (w *walk) step() {
	w.Helper()
	switch n := w.rng.IntN(10); {
	case n < 3 && len(w.feature.acts) > 0:
		w.feature.acts[w.rng.IntN(len(w.feature.acts))](w)
	case n < 4:
		w.ask(true)
	default:
		w.ask(false)
	}
	w.pause()
}

// ask takes or peeks.
func (w *walk) ask(peek bool) {
	w.Helper()
	l := w.asks(w.rng.IntN(len(w.limiters)))
	cost := w.cost()
	w.note("by %d, cost %d, peek %t", w.by, cost, peek)
	ask := l.TakeN
	if peek {
		ask = l.PeekN
	}
	d, err := ask(w.Context(), "s", cost)
	if err != nil {
		w.fail("got %v, want a decision", err)
	}
	want, taken := w.model.take(w.now(), cost, peek)
	w.same(d, want)
	if d.Allowed && !peek && cost > 0 {
		w.held = append(w.held, &held{d, taken, w.by, time.Now(), false})
	}
	w.last = want
}

// same compares a decision with the model's.
func (w *walk) same(d limit.Decision, want view) {
	w.Helper()
	got := viewOf(d)
	log := slices.ContainsFunc(w.versions[w.by], func(s spec) bool { _, is := s.base.(limit.SlidingLog); return is })
	if w.feature.opts.RememberDenials > 0 && !d.Allowed && !want.Allowed &&
		got.RetryAfter <= want.RetryAfter+time.Millisecond && (got.Remaining >= want.Remaining || log) {
		got = want // it may be an earlier answer, aged by whole milliseconds; that of a log does not say when each permit leaves
	}
	if !got.equal(want) {
		w.fail("got  %v\nwant %v", got, want)
	}
	if d.Degraded != w.driver.down || (d.Cause != nil) != w.driver.down {
		w.fail("got degraded %t because of %v, want %t", d.Degraded, d.Cause, w.driver.down)
	}
}

// cost prefers costs at the limits of what can be granted.
func (w *walk) cost() int64 {
	most := min(capacity(w.versions[w.by]), 1<<52)
	switch w.rng.IntN(10) {
	case 0:
		return 0
	case 1:
		return most
	case 2, 3:
		return 1 + w.rng.Int64N(most)
	default:
		return 1
	}
}

// pause prefers the moments at which a decision changes.
func (w *walk) pause() {
	at := w.rng.IntN(len(w.last.States))
	last, p, step := w.last.States[at], w.model.parts[at], w.grain()
	window := min(last.Window, math.MaxInt64/4)
	if window == 0 {
		window = 30 * day
	}
	var pause time.Duration
	switch w.rng.IntN(12) {
	case 0, 1, 2, 3:
		return
	case 4:
		pause = last.RetryAfter - step
	case 5:
		pause = last.RetryAfter
	case 6:
		pause = last.NextAfter
	case 7:
		pause = last.ResetAfter - time.Duration(w.rng.IntN(2))*step
	case 8:
		pause = time.Duration(w.rng.Int64N(int64(window)/10 + 1))
	case 9:
		pause = time.Duration(w.rng.Int64N(2 * int64(window)))
	default:
		if p.ban == nil {
			return
		}
		pause = []time.Duration{p.ban.Within, p.ban.For, p.ban.Max, last.RetryAfter + p.ban.Max}[w.rng.IntN(4)] - time.Duration(w.rng.IntN(2))*step
	}
	pause = max(pause, 0) / step * step
	if w.driver.down {
		pause = min(pause, 7*day)
	}
	for _, p := range w.model.parts {
		if p.lease > 0 { // which is renewed meanwhile
			pause = min(pause, 20*p.lease)
		}
	}
	if time.Now().Add(pause).Year() < 2200 { // Redis tells the microsecond exactly until 2255
		time.Sleep(pause)
	}
}

// grain is the step of the clock: the finest of the policies, or the coarsest.
func (w *walk) grain() time.Duration {
	finest, coarsest := int64(math.MaxInt64), int64(0)
	for _, p := range w.model.parts {
		finest, coarsest = min(finest, p.state.tick()), max(coarsest, p.state.tick())
	}
	if w.driver.coarse {
		finest = coarsest
	}
	return time.Duration(finest) * time.Microsecond
}

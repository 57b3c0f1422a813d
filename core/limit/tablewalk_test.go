package limit_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

// walk is a subject that is asked for at random, beside its model.
type walk struct {
	*testing.T

	rng      *rand.Rand
	driver   driver
	feature  feature
	versions [][]spec // of the numbers
	limiters []*limit.Limiter
	model    *model
	beside   map[string]*model // of other subjects, which have no other processes
	left     map[string]int    // how many subjects with such a first letter are asked no more

	ones []*process // that may lose Redis; nil if none does
	away bool       // they have lost it

	holds bool // its limiters may put the subject on hold

	by   int // the version that is asked now
	over int // the version that the subject has by an Override; 0 if it has none
	last view
	held []*held
	read time.Time      // when the clock of Redis was last read
	told []string       // what happened
	seen map[string]int // counts that

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
	w := &walk{T: t, rng: rng, driver: d, feature: f, versions: [][]spec{specs}, seen: map[string]int{}}
	w.holds = f.opts.Holds && (f.name == "hold" || rng.IntN(2) == 0)
	w.model = w.newModel(specs, d.local || d.down)
	for range 2 {
		switch {
		case f.changed:
			var other []spec
			for _, s := range specs {
				other = append(other, s.scaled(max(s.most()/int64(1+rng.IntN(3)), 1), int64(1+rng.IntN(3))))
			}
			w.versions = append(w.versions, other)
		case f.outages:
			w.versions = append(w.versions, specs)
		}
	}
	return w
}

// newModel makes a model of a subject that may be on hold, if the walk has holds.
func (w *walk) newModel(specs []spec, inProcess bool) *model {
	m := newModel(specs, inProcess)
	if w.holds {
		m.hold = new(banState)
	}
	return m
}

func (w *walk) open(all processes, name string) {
	w.Helper()
	w.name, w.all = name, all
	w.model.lingers = all.clock != nil
	w.model.become(w.versions[0])
	w.beside, w.left, w.ones, w.away, w.over = map[string]*model{}, map[string]int{}, nil, false, 0
	for i := range w.versions {
		specs := w.versions[w.made(i)]
		opts, makes := w.feature.opts, all.one
		opts.Holds = w.holds
		if w.feature.outages {
			one := &process{own: w.newModel(specs, true), had: map[string]algorithm{}}
			makes, one.rdb = all.another()
			w.ones = append(w.ones, one)
			opts.Instances = 1 + w.rng.IntN(5)
			one.own.one = int64(opts.Instances)
		}
		l, err := makes(name, policiesOf(specs), &opts)
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
	if w.away {
		w.comeBack()
	}
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

// scaled returns the policy with another limit, and so many times the rate.
func (s spec) scaled(most, times int64) spec {
	s.base = limit.Set(s.base, most, "Burst", "Limit")
	if faster, is := s.base.(limit.TokenBucket); is {
		faster.Rate *= times
		if _, err := limit.NewLocal("n", []limit.Policy{limit.KeepOnChange(faster)}, nil); err == nil {
			s.base = faster
		}
	}
	return s
}

// window is how long a policy counts what was taken.
func (s spec) window() time.Duration {
	a := newAlgorithm(s)
	a.become(s.base)
	return a.window(0)
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

// made is the version with which a process has made its limiter.
func (w *walk) made(process int) int {
	if w.feature.opts.Overrides {
		return 0
	}
	return process
}

// asks chooses the process that asks.
func (w *walk) asks(by int) *limit.Limiter {
	w.becomes(w.made(by) + w.over)
	return w.limiters[by]
}

// becomes chooses the version by which it is decided.
func (w *walk) becomes(version int) {
	w.by = version
	w.model.become(w.versions[version])
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
	w.seen["steps"]++
	switch n := w.rng.IntN(10); {
	case n < 3 && len(w.feature.acts) > 0:
		w.feature.acts[w.rng.IntN(len(w.feature.acts))](w)
	case n < 4:
		w.ask(true)
	case n == 4 && w.rng.IntN(3) == 0:
		w.together()
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
	looks := peek && w.all.dump != nil && w.rng.IntN(4) == 0
	var before redistest.Dumped
	if looks {
		before = w.all.dump()
	}
	sent := func() int64 { return 0 }
	if w.all.sent != nil {
		sent = w.all.sent
	}
	calls := sent()
	d, err := ask(w.Context(), "s", cost)
	if err != nil {
		w.fail("got %v, want a decision", err)
	}
	if looks && !w.all.dump().Is(before) {
		w.fail("a peek: got something else in Redis, want nothing written")
	}
	want, taken := w.decides(cost, peek)
	w.same(d, want, w.all.sent != nil && sent() == calls)
	if d.Allowed && !peek && cost > 0 {
		w.held = append(w.held, &held{d, taken, w.by, time.Now(), false})
	}
	w.last = want
}

// decides is what the process that is asked decides, by Redis or without it.
func (w *walk) decides(cost int64, peek bool) (view, *receipt) {
	if w.ones == nil {
		return w.model.take(w.now(), cost, peek)
	}
	one := w.ones[w.by]
	if w.away {
		one.goesOn(w.now())
		return one.own.take(w.now(), cost, peek)
	}
	want, taken := w.model.take(w.now(), cost, peek)
	one.hears(w.model, w.now())
	return want, taken
}

// same compares a decision, which may be remembered, with the model's.
func (w *walk) same(d limit.Decision, want view, remembered bool) {
	w.Helper()
	got := viewOf(d)
	log := slices.ContainsFunc(w.versions[w.by], func(s spec) bool { _, is := s.base.(limit.SlidingLog); return is })
	if remembered && w.feature.opts.RememberDenials > 0 && !d.Allowed && !want.Allowed &&
		got.RetryAfter <= want.RetryAfter+time.Millisecond && (got.Remaining >= want.remaining(got.Policy) || log) {
		got = want // it may be an earlier answer, aged by whole milliseconds; that of a log does not say when each permit leaves
	}
	if !got.equal(want) {
		w.fail("got  %v\nwant %v", got, want)
	}
	for what, is := range map[string]bool{
		"denied": !d.Allowed, "banned": d.Banned(), "on hold": d.OnHold(), "decided in an outage": w.away,
		"remembered": remembered && w.ones == nil && !d.Allowed,
	} {
		if is {
			w.seen[what]++
		}
	}
	if down := w.driver.down || w.away; d.Degraded != down || (d.Cause != nil) != down {
		w.fail("got degraded %t because of %v, want %t", d.Degraded, d.Cause, down)
	}
}

// cost prefers costs at the limits of what can be granted.
func (w *walk) cost() int64 {
	return randomCost(w.rng, min(capacity(w.versions[w.by]), 1<<52))
}

func randomCost(rng *rand.Rand, most int64) int64 {
	switch rng.IntN(10) {
	case 0:
		return 0
	case 1:
		return most
	case 2, 3:
		return 1 + rng.Int64N(most)
	default:
		return 1
	}
}

// pause prefers the moments at which a decision changes.
func (w *walk) pause() {
	at := w.rng.IntN(len(w.last.States))
	last, p, step := w.last.States[at], w.model.parts[at], w.grain()
	pause := randomPause(w.rng, last, step)
	if p.ban != nil && w.rng.IntN(6) == 0 {
		pause = []time.Duration{p.ban.Within, p.ban.For, p.ban.Max, last.RetryAfter + p.ban.Max}[w.rng.IntN(4)] - time.Duration(w.rng.IntN(2))*step
		pause = max(pause, 0) / step * step
	}
	if w.driver.down || w.ones != nil {
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

func randomPause(rng *rand.Rand, last limit.State, step time.Duration) (pause time.Duration) {
	window := min(last.Window, math.MaxInt64/4)
	if window == 0 {
		window = 30 * day
	}
	switch rng.IntN(12) {
	case 0:
		pause = last.RetryAfter - step
	case 1:
		pause = last.RetryAfter
	case 2:
		pause = last.NextAfter
	case 3:
		pause = last.ResetAfter - time.Duration(rng.IntN(2))*step
	case 4:
		pause = time.Duration(rng.Int64N(int64(window)/10 + 1))
	case 5:
		pause = time.Duration(rng.Int64N(2 * int64(window)))
	}
	return max(pause, 0) / step * step
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

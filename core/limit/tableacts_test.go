package limit_test

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// choose returns one of the last decisions, and has the process that made it ask. exact is for
// what gives back to a bucket, where the model knows what is left only at the moment of the
// decision.
func (w *walk) choose(exact bool) *held {
	if len(w.held) == 0 {
		return nil
	}
	at := len(w.held) - 1 - w.rng.IntN(min(len(w.held), 5))
	h := w.held[at]
	since := time.Since(w.read)
	vague := !h.at.Equal(time.Now()) || since > 0 && since <= 10*time.Second // a reading of the clock is used again for that long
	if exact && vague && h.drains() {
		return nil
	}
	if w.rng.IntN(4) > 0 { // or else again
		w.held = slices.Delete(w.held, at, at+1)
	}
	w.becomes(h.by)
	return h
}

// drains reports whether a bucket was charged.
func (h *held) drains() bool {
	return slices.ContainsFunc(h.receipt.marks, func(m mark) bool {
		_, is := m.(drained)
		return is
	})
}

// spoil has a key lose its time to live, or live far too long.
func (w *walk) spoil() {
	w.Helper()
	if w.driver.local || w.driver.down || w.rng.IntN(2) > 0 {
		return
	}
	p := w.model.parts[w.rng.IntN(len(w.model.parts))]
	b, is := p.state.(mender)
	if !is || p.state.idle(w.now()) || p.state.window(w.now()) > 10_000*day { // or 30,000 days may be no longer than it lives
		return
	}
	d := time.Duration(w.rng.IntN(2)) * 30_000 * day
	for _, key := range w.all.keys("limit:" + w.name + ":{s}:*") {
		_, tail, _ := strings.Cut(key, "}:")
		if strings.Contains(tail, "!ban-") { // nobody may ask for it again, and so heal it, when the policies have changed
			continue
		}
		if tail == p.base.PolicyName() || strings.HasPrefix(tail, p.base.PolicyName()+"!kept") {
			w.note("%s lives %v", key, d)
			w.seen["a time to live"]++
			w.all.lives(key, d)
			b.breaks()
		}
	}
}

// setBack sets the clock of Redis back, unless a key may have ended: then it depends on when Redis
// deletes the key whether it comes back.
func (w *walk) setBack() {
	w.Helper()
	ends := func(p *part) bool { return p.state.idle(w.now()) || p.bans.over(p.ban, w.now()) }
	held := w.model.hold != nil && w.model.hold.length > 0 && w.model.hold.left(w.now()) == 0
	if w.all.clock == nil || w.rng.IntN(2) > 0 || held || slices.ContainsFunc(w.model.parts, ends) {
		return
	}
	for subject, m := range w.beside {
		if slices.ContainsFunc(m.parts, ends) { // another subject takes its place
			delete(w.beside, subject)
			w.left[subject[:1]]++
		}
	}
	window := min(w.last.States[w.rng.IntN(len(w.last.States))].Window, 400*day)
	back := time.Duration(w.rng.Int64N(int64(window)+int64(time.Second))) / w.grain() * w.grain()
	w.note("the clock of Redis is set back by %v", back)
	w.seen["a clock set back"]++
	w.all.clock.SetBack(back)
}

// crash has a process take once and end at that moment.
func (w *walk) crash() {
	w.Helper()
	if w.driver.local || w.driver.down || w.rng.IntN(2) > 0 { // estimates in process have no lease
		return
	}
	w.asks(0)
	cost := w.cost()
	w.note("cost %d, and a crash", cost)
	w.seen["a crash"]++
	makes, rdb := w.all.another()
	l, err := makes(w.name, policiesOf(w.versions[0]), nil)
	if err != nil {
		w.Fatal(err)
	}
	d, err := l.TakeN(w.Context(), "s", cost)
	rdb.Cut("refused")
	if err != nil {
		w.fail("got %v, want a decision", err)
	}
	want, taken := w.model.take(w.now(), cost, false)
	w.same(d, want, false)
	for i, p := range w.model.parts {
		if l, is := p.state.(*leased); is && taken.marks[i] != nil {
			l.crash(w.now(), taken.marks[i])
		}
	}
}

func (w *walk) refund() {
	w.Helper()
	h := w.choose(true)
	if h == nil {
		return
	}
	w.note("by %d, a refund of %d of %v ago", w.by, h.receipt.cost, time.Since(h.at))
	err := h.Refund(w.Context())
	again := h.spent
	given := !again && w.model.refund(w.now(), h.receipt)
	h.spent, w.read = true, time.Now()
	if h.receipt.empty() { // shadows that would have denied: the decision took nothing
		given = !again
	}
	w.seen[map[bool]string{true: "a refund", false: "a refund of nothing"}[given]]++
	if given && err != nil || !given && !errors.Is(err, limit.ErrRefund) {
		w.fail("a refund: got %v, want given back %t", err, given)
	}
}

func (w *walk) settle() {
	w.Helper()
	actual := w.rng.Int64N(30)
	if len(w.held) > 0 {
		actual = w.rng.Int64N(min(3*w.held[len(w.held)-1].receipt.cost+3, 1<<53))
	}
	h := w.choose(true)
	if h == nil {
		return
	}
	never := slices.ContainsFunc(w.model.parts, func(p *part) bool {
		_, log := p.state.(*slidingLog)
		return log && !p.once
	})
	w.note("by %d, a settlement of %d of %v ago to %d", w.by, h.receipt.cost, time.Since(h.at), actual)
	got, err := h.Settle(w.Context(), actual)
	if h.spent || never {
		if !errors.Is(err, limit.ErrSettle) {
			w.fail("a second conclusion, or a log: got %v, want ErrSettle", err)
		}
		return
	}
	forgiven := w.model.settle(w.now(), h.receipt, actual)
	h.spent, w.read = true, time.Now()
	switch {
	case forgiven > 0:
		w.seen["forgiven"]++
	case actual < h.receipt.cost:
		w.seen["settled to less"]++
	case actual > h.receipt.cost:
		w.seen["settled to more"]++
	}
	if err != nil || got.Forgiven != forgiven {
		w.fail("a settlement: got %d forgiven, %v, want %d", got.Forgiven, err, forgiven)
	}
	w.model.one, h.receipt.one = h.receipt.one, w.model.one // it was one of so many when it took
	want, _ := w.model.take(w.now(), 1, true)
	w.model.one, h.receipt.one = h.receipt.one, w.model.one
	after := viewOf(got.After)
	for i, p := range w.model.parts { // what is not settled is not read, nor are bans and leases
		if h.receipt.marks[i] == nil || p.once || p.ban != nil || p.lease > 0 || i == 0 && w.model.hold.left(w.now()) > 0 {
			after.States[i] = want.States[i]
			after.figures = want.figures
		}
	}
	if !after.equal(want) {
		w.fail("after a settlement: got %v\nwant %v", after, want)
	}
}

func (w *walk) reset() {
	w.Helper()
	if w.rng.IntN(3) > 0 || w.away {
		return
	}
	l := w.asks(w.rng.IntN(len(w.limiters)))
	w.note("by %d, a reset", w.by)
	found, err := l.Reset(w.Context(), "s")
	want := w.model.reset(w.now())
	if w.ones != nil {
		want = w.ones[w.by].own.reset(w.now()) || want
		clear(w.ones[w.by].had)
	}
	w.held = nil
	if (err != nil) != w.driver.down {
		w.fail("a reset: got %v, want an error only without Redis", err)
	}
	if found {
		w.seen["a reset"]++
	}
	// A key may last a moment longer than what it counts.
	if want && !found || found && !want && w.driver.local {
		w.fail("a reset: got found %t, want %t", found, want)
	}
}

// override gives the subject the numbers of another version, or ends that.
func (w *walk) override() {
	w.Helper()
	if w.rng.IntN(3) > 0 {
		return
	}
	over, l := w.rng.IntN(len(w.versions)), w.asks(w.rng.IntN(len(w.limiters)))
	w.note("the subject has version %d", over)
	w.seen["an override"]++
	var err error
	if over == 0 {
		var found bool
		if found, err = l.EndOverride(w.Context(), "s"); err == nil && found != (w.over > 0) {
			w.fail("EndOverride: got found %t, want %t", found, w.over > 0)
		}
	} else {
		var policies []limit.Policy
		for _, s := range w.versions[over] {
			policies = append(policies, s.base)
		}
		err = l.Override(w.Context(), "s", 100_000*day, policies...)
	}
	if (err != nil) != w.driver.down {
		w.fail("an override: got %v, want an error only without Redis", err)
	}
	if err == nil {
		w.over = over
	}
}

func (w *walk) hold() {
	w.Helper()
	if w.rng.IntN(2) > 0 || w.away {
		return
	}
	d := time.Duration(1+w.rng.Int64N([]int64{5, 2000, 1_000_000}[w.rng.IntN(3)]))*time.Millisecond - time.Duration(w.rng.IntN(2))
	w.note("a hold of %v", d)
	err := w.asks(w.rng.IntN(len(w.limiters))).Hold(w.Context(), "s", d)
	if !w.holds {
		if !errors.Is(err, limit.ErrNoHold) {
			w.fail("a hold of %v: got %v, want ErrNoHold", d, err)
		}
		return
	}
	if (err != nil) != w.driver.down {
		w.fail("a hold of %v: got %v, want an error only without Redis", d, err)
	}
	w.model.holds(w.now(), d)
	if w.ones != nil {
		*w.ones[w.by].own.hold = *w.model.hold
		w.ones[w.by].own.hold.told = true
	}
}

func (w *walk) ban() {
	w.Helper()
	d := time.Duration(1+w.rng.Int64N(1_000_000))*time.Millisecond - time.Duration(w.rng.IntN(2))
	w.byHand(d, func(l *limit.Limiter) (time.Duration, bool, error) { return 0, false, l.Ban(w.Context(), "s", d) })
}

func (w *walk) unban() {
	w.Helper()
	w.byHand(0, func(l *limit.Limiter) (time.Duration, bool, error) {
		found, err := l.Unban(w.Context(), "s")
		return 0, found, err
	})
}

func (w *walk) banned() {
	w.Helper()
	w.byHand(-1, func(l *limit.Limiter) (time.Duration, bool, error) {
		left, err := l.Banned(w.Context(), "s")
		return left, false, err
	})
}

// byHand bans; with 0 it lifts bans, and with -1 it asks.
func (w *walk) byHand(d time.Duration, do func(*limit.Limiter) (left time.Duration, found bool, err error)) {
	w.Helper()
	if w.rng.IntN(2) > 0 || w.away {
		return
	}
	w.note("a ban of %v by hand", d)
	left, found, err := do(w.asks(w.rng.IntN(len(w.limiters))))
	if !slices.ContainsFunc(w.model.parts, func(p *part) bool { return p.ban != nil }) {
		if !errors.Is(err, limit.ErrNoBan) {
			w.fail("a ban of %v by hand: got %v, want ErrNoBan", d, err)
		}
		return
	}
	asks := d >= 0 || slices.ContainsFunc(w.model.parts, func(p *part) bool { return p.ban != nil && !p.shadow })
	if (err != nil) != (w.driver.down && asks) {
		w.fail("a ban of %v by hand: got %v, want an error only without Redis", d, err)
	}
	want := w.model.banned(w.now())
	if d >= 0 {
		was := w.model.ban(w.now(), d)
		if w.ones != nil {
			was = max(was, w.ones[w.by].untold(w.now()))
			w.ones[w.by].hearsOf(w.now(), d)
		}
		if d == 0 && !w.driver.down && found != (was > 0) {
			w.fail("Unban: got found %t, want %t", found, was > 0)
		}
		return
	}
	if !w.driver.down && left != want {
		w.fail("Banned: got %v, want %v", left, want)
	}
}

package limit_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// answer is what one of several callers got.
type answer struct {
	view
	decision limit.Decision
	cost     int64
	peek     bool
	receipt  *receipt
}

// together has callers of some subjects take at one moment, or of one subject if others are on
// other servers. Their calls wait together, so that some are merged. The decisions about a subject are those of one
// caller after the other, in some order.
func (w *walk) together() {
	w.Helper()
	if w.ones != nil || w.feature.opts.RememberDenials > 0 || slices.ContainsFunc(w.model.parts, isLeased) {
		return // one caller's denial may answer others from memory, and a settlement must find its estimate in the model that took it
	}
	l := w.asks(w.rng.IntN(len(w.limiters)))
	got := map[string][]*answer{}
	var calling sync.WaitGroup
	release := w.keepWaiting(&calling, l)
	cost, peek := w.cost(), false
	for range 2 + w.rng.IntN(10) {
		if w.rng.IntN(3) == 0 { // else it is that of the one before: such calls are a run
			peek = w.rng.IntN(4) == 0
			cost = []int64{w.cost(), min(w.rng.Int64N(4), capacity(w.versions[w.by]))}[w.rng.IntN(2)]
		}
		subject, a := "s", &answer{cost: cost, peek: peek}
		if !w.driver.lone {
			if subject = []string{"s", "s", "s", "t", "u"}[w.rng.IntN(5)]; w.left[subject] > 0 {
				subject += strconv.Itoa(w.left[subject])
			}
		}
		got[subject] = append(got[subject], a)
		calling.Go(func() {
			var err error
			ask := l.TakeN
			if a.peek {
				ask = l.PeekN
			}
			if a.decision, err = ask(w.Context(), subject, a.cost); err != nil {
				w.Errorf("one of several callers: got %v, want a decision", err)
			}
			a.view = viewOf(a.decision)
		})
	}
	synctest.Wait()
	if w.all.hold != nil {
		w.seen["together"]++
		w.seen["merged"] -= int(w.all.merged())
	}
	release()
	calling.Wait()
	if w.all.hold != nil {
		w.seen["merged"] += int(w.all.merged())
	}
	for subject, all := range got {
		m := w.model
		if subject != "s" {
			if w.beside[subject] == nil {
				w.beside[subject] = newModel(w.versions[w.by-w.over], m.inProcess)
			}
			m = w.beside[subject]
			m.become(w.versions[w.by-w.over])
			m.one = w.model.one
		}
		after := w.inSomeOrder(m, all)
		if after == nil {
			w.fail("callers together for %q: got %v, which is no order of them", subject, texts(all))
		}
		if now := w.now(); after.bars(now) > m.bars(now) { // the answers do not tell which denials other bans have counted before that one
			if _, err := l.Unban(w.Context(), subject); (err != nil) != w.driver.down {
				w.fail("Unban: got %v, want an error only without Redis", err)
			}
			after.ban(now, 0)
		}
		if subject != "s" {
			w.beside[subject] = after
			continue
		}
		w.model = after
		for _, a := range all {
			if a.decision.Allowed && a.cost > 0 && !a.peek {
				w.held = append(w.held, &held{a.decision, a.receipt, w.by, time.Now(), false})
			}
		}
	}
}

// keepWaiting has calls wait together until release, so that they are merged: the connections are in
// use, by questions that change nothing.
func (w *walk) keepWaiting(calling *sync.WaitGroup, l *limit.Limiter) (release func()) {
	w.Helper()
	if w.all.hold == nil {
		return func() {}
	}
	release = w.all.hold()
	for range 10 { // batches that a queue has in flight
		calling.Go(func() {
			if _, err := l.PeekN(w.Context(), "s", 0); err != nil {
				w.Errorf("a question: got %v, want an answer", err)
			}
		})
		synctest.Wait()
	}
	return release
}

// spoiledTogether has callers ask for a key that lives too long, or for ever, before one of them has
// healed it.
func (w *walk) spoiledTogether() {
	w.Helper()
	w.spoil()
	w.together()
}

// inSomeOrder returns the model after all answers in an order in which it gives each of them, or nil if
// there is none.
func (w *walk) inSomeOrder(m *model, all []*answer) *model {
	if len(all) == 0 {
		return m
	}
	bans := slices.ContainsFunc(m.parts, func(p *part) bool { return p.bans != nil })
	for i, a := range all {
		if slices.ContainsFunc(all[:i], func(other *answer) bool { return other.cost == a.cost && other.peek == a.peek && other.equal(a.view) }) {
			continue // like one that was tried
		}
		after := m.clone()
		want, taken := after.take(w.now(), a.cost, a.peek)
		if !a.equal(want) {
			continue
		}
		a.receipt = taken
		rest := slices.Delete(slices.Clone(all), i, i+1)
		if after = w.inSomeOrder(after, rest); after != nil || a.peek || !a.decision.Allowed && !bans { // a peek, and a denial that no ban counts, change nothing, so they may come first
			return after
		}
	}
	return nil
}

func isLeased(p *part) bool {
	_, is := p.state.(*leased)
	return is
}

func texts(all []*answer) (texts []string) {
	for _, a := range all {
		texts = append(texts, fmt.Sprintf("\ncost %d, peek %t: %v", a.cost, a.peek, a.view))
	}
	return texts
}

// wait has a caller wait until it is admitted, or be denied at once if that takes too long.
func (w *walk) wait() {
	w.Helper()
	l := w.asks(w.rng.IntN(len(w.limiters)))
	cost := w.cost()
	foreseen, _ := w.model.clone().take(w.now(), cost, true)
	rest := foreseen.RetryAfter
	if rest%w.grain() != 0 || rest > 400*day || time.Now().Year() >= 2198 || w.driver.down && rest > 7*day {
		return
	}
	if rest > 0 {
		rest = max(rest, time.Millisecond) // between two questions
	}
	most := []time.Duration{0, rest - w.grain(), rest, 2 * rest}[w.rng.IntN(4)]
	w.note("by %d, a wait for %d of %v, which %v would do", w.by, cost, most, rest)
	began := time.Now()
	d, err := l.WaitFor(w.Context(), "s", cost, most)
	if err != nil {
		w.fail("a wait: got %v, want a decision", err)
	}
	waited := time.Since(began)
	if waited > 0 {
		w.seen["a wait"]++
	}
	if d.Allowed != (rest <= max(most, 0)) || d.Allowed && waited != rest || !d.Allowed && waited != 0 {
		w.fail("a wait for %v that needs %v: got allowed %t after %v", most, rest, d.Allowed, waited)
	}
	want, taken := w.model.take(w.now(), cost, false)
	w.same(d, want, false)
	if d.Allowed && cost > 0 {
		w.held = append(w.held, &held{d, taken, w.by, time.Now(), false})
	}
	w.last = want
}

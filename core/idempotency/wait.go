package idempotency

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/neap-go/neap/core/internal/misuse"
)

// Await waits while another caller does the work. Otherwise it is like Begin. It waits
// for Options.Wait at most, and no longer than ctx. When the other run ends, Await
// returns its result, or a claim if that run has done nothing. It returns [ErrInFlight]
// if the wait was in vain, and ctx.Err() if ctx ended first.
//
// Await costs one round trip if no other caller does the work. Otherwise one caller of
// each process asks again after half to all of a RetryDelay, and the others ask when that
// one has an answer. A run that ends in this process wakes them immediately.
func (g *Guard) Await(ctx context.Context, key, fingerprint string) (Answer, error) {
	misuse.Context(ctx)
	q, err := g.question(key, fingerprint)
	if err != nil {
		return Answer{}, err
	}
	r, err := g.await(ctx, &q)
	return g.finish(ctx, &q, r, err)
}

func (g *Guard) await(ctx context.Context, q *question) (Answer, error) {
	w := waiter{of: &g.watch, key: q.record}
	defer w.leave()
	var alarm *time.Timer
	for over := false; ; {
		w.join() // before asking, so that no answer is missed
		r, err := g.begin(ctx, q)
		switch {
		case r.Done, errors.Is(err, ErrNoResult), errors.Is(err, ErrUnreadable), errors.Is(err, ErrInDoubt):
			w.notify()
			return r, err
		case over || !errors.Is(err, ErrInFlight):
			return r, err
		}
		q.waited = true
		if alarm == nil {
			alarm = time.NewTimer(g.wait)
			defer alarm.Stop()
		}
		switch w.wait(ctx, alarm.C, g.opts.RetryDelay) {
		case timedOut:
			over = true
		case canceled:
			return Answer{}, ctx.Err()
		}
	}
}

// watchers are the callers of this process that wait for runs to end.
type watchers struct {
	mu     sync.Mutex
	groups map[string]*group
}

// group is the callers that wait for one key.
type group struct {
	waiters int
	changed chan struct{} // closed when asking Redis again makes sense
	leader  chan struct{} // holds an element while no caller asks for the others
}

// notify makes all callers that wait for a key ask again.
func (w *watchers) notify(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g, ok := w.groups[key]; ok {
		delete(w.groups, key)
		close(g.changed)
	}
}

// waiter is one of the callers that wait for a key.
type waiter struct {
	of    *watchers
	key   string
	group *group
	leads bool
}

// join makes the waiter notice what happens from now on.
func (w *waiter) join() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	g, ok := w.of.groups[w.key]
	if ok && g == w.group {
		return
	}
	if !ok {
		if w.of.groups == nil {
			w.of.groups = map[string]*group{}
		}
		g = &group{changed: make(chan struct{}), leader: make(chan struct{}, 1)}
		g.leader <- struct{}{}
		w.of.groups[w.key] = g
	}
	g.waiters++
	w.group, w.leads = g, false
}

// leave passes the lead on, if this waiter has it.
func (w *waiter) leave() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if w.leads {
		w.group.leader <- struct{}{}
	}
	w.group.waiters--
	if w.group.waiters == 0 && w.of.groups[w.key] == w.group {
		delete(w.of.groups, w.key)
	}
}

// notify makes other callers ask again: those for which this waiter has asked.
func (w *waiter) notify() {
	if w.leads {
		w.of.notify(w.key)
	}
}

type wakeUp uint8

const (
	toAsk wakeUp = iota
	timedOut
	canceled
)

func (w *waiter) wait(ctx context.Context, alarm <-chan time.Time, delay time.Duration) wakeUp {
	leader := w.group.leader
	var poll <-chan time.Time
	for {
		if w.leads {
			timer := time.NewTimer(delay/2 + rand.N(delay/2))
			defer timer.Stop()
			leader, poll = nil, timer.C
		}
		select {
		case <-leader:
			w.leads = true
		case <-poll:
			return toAsk
		case <-w.group.changed:
			return toAsk
		case <-alarm:
			return timedOut
		case <-ctx.Done():
			return canceled
		}
	}
}

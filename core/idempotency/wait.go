package idempotency

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/neap-go/neap/core/internal/misuse"
)

// Await is Begin, but waits while somebody else is at it: for Options.Wait at
// most, and no longer than ctx. When the run ends, it returns its result, or a
// claim where nothing was done. The error is [ErrInFlight] when the wait was in
// vain, and ctx.Err() when ctx ended before it.
//
// It costs one round trip where nobody is at it. Otherwise one caller of each
// process asks again after each RetryDelay, and the others when that has learnt
// something; a run that ends in this process is learnt of at once.
func (g *Guard) Await(ctx context.Context, key, fingerprint string) (*Claim, []byte, error) {
	misuse.Context(ctx)
	q, err := g.question(key, fingerprint)
	if err != nil {
		return nil, nil, err
	}
	c, result, err := g.await(ctx, &q)
	return g.told(&q, c, result, err)
}

func (g *Guard) await(ctx context.Context, q *question) (*Claim, []byte, error) {
	w := waiter{of: &g.watch, key: q.record}
	defer w.leave()
	var alarm *time.Timer
	for over := false; ; {
		w.join() // before the question, so that no answer to it is missed
		c, result, err := g.begin(ctx, q)
		switch {
		case err == nil && c == nil, errors.Is(err, ErrNoResult), errors.Is(err, ErrInDoubt):
			w.tell()
			return nil, result, err
		case over || !errors.Is(err, ErrInFlight):
			return c, result, err
		}
		if alarm == nil {
			alarm = time.NewTimer(g.opts.Wait)
			defer alarm.Stop()
		}
		switch w.wait(ctx, alarm.C, g.opts.RetryDelay) {
		case timedOut:
			over = true
		case canceled:
			return nil, nil, ctx.Err()
		}
	}
}

// watch are those of this process that wait for a run.
type watch struct {
	mu     sync.Mutex
	places map[string]*place
}

// place is where those meet that wait for one key.
type place struct {
	waiters int
	news    chan struct{} // closed when it makes sense to ask
	lead    chan struct{} // holds an element while nobody asks for all of them
}

// ring has all ask that wait for a key.
func (w *watch) ring(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.places[key]; ok {
		delete(w.places, key)
		close(p.news)
	}
}

// waiter is one of them.
type waiter struct {
	of    *watch
	key   string
	place *place
	leads bool
}

// join has the waiter hear of what happens from now on.
func (w *waiter) join() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	p, ok := w.of.places[w.key]
	if ok && p == w.place {
		return
	}
	if !ok {
		if w.of.places == nil {
			w.of.places = map[string]*place{}
		}
		p = &place{news: make(chan struct{}), lead: make(chan struct{}, 1)}
		p.lead <- struct{}{}
		w.of.places[w.key] = p
	}
	p.waiters++
	w.place, w.leads = p, false
}

// leave has another lead, where this one does.
func (w *waiter) leave() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if w.leads {
		w.place.lead <- struct{}{}
	}
	w.place.waiters--
	if w.place.waiters == 0 && w.of.places[w.key] == w.place {
		delete(w.of.places, w.key)
	}
}

// tell has the others ask, for whom this one did.
func (w *waiter) tell() {
	if w.leads {
		w.of.ring(w.key)
	}
}

type wakeUp uint8

const (
	toAsk wakeUp = iota
	timedOut
	canceled
)

func (w *waiter) wait(ctx context.Context, alarm <-chan time.Time, delay time.Duration) wakeUp {
	lead := w.place.lead
	var poll <-chan time.Time
	for {
		if w.leads {
			timer := time.NewTimer(delay/2 + rand.N(delay/2))
			defer timer.Stop()
			lead, poll = nil, timer.C
		}
		select {
		case <-lead:
			w.leads = true
		case <-poll:
			return toAsk
		case <-w.place.news:
			return toAsk
		case <-alarm:
			return timedOut
		case <-ctx.Done():
			return canceled
		}
	}
}

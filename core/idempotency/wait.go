package idempotency

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
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
	q, err := g.question(key, fingerprint)
	if err != nil {
		return nil, nil, err
	}
	c, result, err := g.await(ctx, q)
	return g.told(q, c, result, err)
}

func (g *Guard) await(ctx context.Context, q *question) (*Claim, []byte, error) {
	var place *place
	var alarm *time.Timer
	for leads, over := false, false; ; {
		c, result, err := g.begin(ctx, q)
		if over || !errors.Is(err, ErrInFlight) {
			if leads {
				g.watch.leave(q.record, place)
			}
			return c, result, err
		}
		if alarm == nil {
			alarm = time.NewTimer(g.opts.Wait)
			defer alarm.Stop()
		}
		if !leads {
			place, leads = g.watch.join(q.record)
		}
		var poll <-chan time.Time
		if leads {
			poll = time.After(g.opts.RetryDelay/2 + rand.N(g.opts.RetryDelay/2))
		}
		select {
		case <-poll:
		case <-place.news:
			leads = false
		case <-alarm.C:
			over = true
		case <-ctx.Done(): // which begin tells of
		}
	}
}

// watch are those of this process that wait for a run. The first to come for a
// key asks for all of them.
type watch struct {
	mu     sync.Mutex
	places map[string]*place
}

type place struct {
	news chan struct{} // closed when it makes sense to ask
}

func (w *watch) join(key string) (p *place, first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.places[key]
	if ok {
		return p, false
	}
	if w.places == nil {
		w.places = map[string]*place{}
	}
	p = &place{news: make(chan struct{})}
	w.places[key] = p
	return p, true
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

// leave has the others ask, one of whom will be the first.
func (w *watch) leave(key string, p *place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.places[key] == p {
		delete(w.places, key)
		close(p.news)
	}
}

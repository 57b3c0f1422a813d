package lock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/token"
	"github.com/neap-go/neap/core/script"
)

// await asks until the bid gets the lock or the limit has passed. A limit of 0 is none.
func (s *shared) await(ctx context.Context, b *bid, limit time.Duration) (held *Lock, err error) {
	w := s.queues.join(b.key, b.queue)
	returned := false
	defer func() {
		h, ok, stands := w.leave()
		switch {
		case ok && returned:
			held, err = s.late(ctx, b, h, held, err)
		case ok: // a hook of the client has ended the goroutine
			s.decline(endless(ctx), b.key, h)
		}
		if stands && held == nil && (errors.Is(err, ErrHeld) || ask.IsCallers(err)) {
			s.leave(endless(ctx), b.key)
		}
	}()
	held, err = s.stand(ctx, b, w, limit)
	returned = true
	return held, err
}

// stand waits in the queue, and then for the lock.
func (s *shared) stand(ctx context.Context, b *bid, w *waiter, limit time.Duration) (*Lock, error) {
	deadline := deadline{limit: limit, set: time.Now()}
	defer deadline.stop()
	var over <-chan time.Time
	if !w.isFirst() {
		over = deadline.passed()
	}
	select {
	case <-w.turn:
		return s.contend(ctx, b, w, &deadline)
	case <-over: // ask once: the callers before it may have got no answer
		held, _, err := s.attempt(ctx, b, "")
		if held == nil && err == nil {
			err = ErrHeld
		}
		return held, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// persist waits for the lock without a limit, also while Redis is down. away is the last
// error of Redis. persist asks again with the same hold, so it finds a grant whose reply
// was lost.
func (s *shared) persist(ctx context.Context, b *bid) (held *Lock, away, err error) {
	for {
		held, err = s.await(ctx, b, 0)
		switch {
		case errors.Is(err, script.ErrNotExecuted), errors.Is(err, script.ErrMaybeExecuted):
			away = err
		case errors.Is(err, ErrExpired): // the hold may still have to be ended, so ask with another
			b.hold, b.doubt = token.New(), ask.Doubt{}
			b.owner = b.hold
		default:
			return held, away, err
		}
		ask.Pause(ctx, s.opts.RetryDelay)
	}
}

// within reports whether ctx is the context of a holder of the key. Its caller would wait
// for itself.
func (b *bid) within(ctx context.Context) bool {
	outer, ok := FromContext(ctx)
	return ok && outer.key == b.key && outer.Err() == nil
}

// contend asks for the lock on behalf of the first in a queue. While this process holds
// the lock, it waits for the release. It then asks only once a RetryDelay, because the
// lock may have been forced open.
func (s *shared) contend(ctx context.Context, b *bid, w *waiter, deadline *deadline) (*Lock, error) {
	listener := s.notifier.attach(b.key)
	defer func() { listener.close() }()
	var poll *time.Timer
	for due, last := false, false; ; {
		changed := w.changed() // before asking, so that no release in between is missed
		wake := listener.wake()
		delay := s.retry(wake)
		if busy := w.busy(); due || !busy {
			note := wake
			if busy || last { // a release of this process finds its own callers without a line
				note = ""
			}
			held, lapses, err := s.attempt(ctx, b, note)
			if held != nil || err != nil {
				return held, err
			}
			delay = min(delay, lapses+time.Millisecond)
			if listener.dead() {
				listener.close()
				listener = s.notifier.listen(b.key)
			}
		}
		if last {
			return nil, ErrHeld
		}
		if poll == nil {
			poll = time.NewTimer(delay)
			defer poll.Stop()
		} else {
			poll.Reset(delay)
		}
		due = false
		select {
		case h := <-w.handed:
			return s.accept(ctx, b, h)
		case <-changed:
		case <-listener.change(wake):
		case <-poll.C:
			due = true
		case <-deadline.passed():
			due, last = true, true
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// retry returns how long to wait before asking again: half to all of RetryDelay. A caller
// that is notified of releases asks late. It asks at an instant at which other callers of
// this process ask too, because that costs the process least.
func (s *shared) retry(wake string) time.Duration {
	most := s.opts.RetryDelay
	if wake == "" {
		return most/2 + rand.N(most/2)
	}
	delay := most - rand.N(most/8)
	return delay - time.Duration(time.Now().Add(delay).UnixNano()+phase)%(most/8)
}

// phase keeps processes from asking at the same instants.
var phase = rand.Int64N(int64(time.Hour))

// deadline passes once, limit after it was set. It never passes if limit is 0. Its timer
// is made when a caller is about to wait.
type deadline struct {
	limit time.Duration
	set   time.Time
	timer *time.Timer
}

func (d *deadline) passed() <-chan time.Time {
	if d.limit == 0 {
		return nil
	}
	if d.timer == nil {
		d.timer = time.NewTimer(time.Until(d.set.Add(d.limit)))
	}
	return d.timer.C
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}

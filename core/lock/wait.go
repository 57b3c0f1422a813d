package lock

import (
	"context"
	"math/rand/v2"
	"time"
)

// wait asks until the bid gets the lock or the limit has passed; 0 is none.
func (s *shared) wait(ctx context.Context, b *bid, limit time.Duration) (*Lock, error) {
	w := s.lines.join(b.key, b.line)
	defer w.leave()
	asked := w.isFirst() && !w.busy()
	if asked {
		held, _, err := s.attempt(ctx, b, "")
		if held != nil || err != nil {
			return held, err
		}
	}

	over, stop := alarm(limit)
	defer stop()
	select {
	case <-w.turn:
	case <-over: // who was before it in line may have had no answer
		held, _, err := s.attempt(ctx, b, "")
		if held == nil && err == nil {
			err = ErrHeld
		}
		return held, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	var ear *ear
	defer func() { ear.close() }()
	if asked {
		ear = s.bells.listen(b.key)
	}
	poll := time.NewTimer(s.opts.RetryDelay)
	defer poll.Stop()
	for ask, last := !asked && !w.busy(), false; ; ask = true {
		bell := w.bell() // before the question, or what happens in between would go unheard
		wake := ear.wake()
		delay := s.opts.RetryDelay/2 + rand.N(s.opts.RetryDelay/2)
		if ask {
			held, lapses, err := s.attempt(ctx, b, wake)
			if held != nil || err != nil {
				return held, err
			}
			delay = min(delay, lapses+time.Millisecond)
			if ear.dead() {
				ear.close()
				ear = s.bells.listen(b.key)
			}
		}
		if last {
			return nil, ErrHeld
		}
		poll.Reset(delay)
		select {
		case <-bell:
		case <-ear.change(wake):
		case <-poll.C:
		case <-over:
			last = true
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// alarm goes off once after d, or never where d is 0.
func alarm(d time.Duration) (<-chan time.Time, func()) {
	if d == 0 {
		return nil, func() {}
	}
	timer := time.NewTimer(d)
	return timer.C, func() { timer.Stop() }
}

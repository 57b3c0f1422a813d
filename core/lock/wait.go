package lock

import (
	"context"
	"math/rand/v2"
	"time"
)

// wait asks until the bid gets the lock or the limit has passed; 0 is none.
func (s *shared) wait(ctx context.Context, b *bid, limit time.Duration) (held *Lock, err error) {
	w := s.lines.join(b.key, b.line)
	defer func() {
		if g, given := w.leave(); given {
			held, err = s.late(ctx, b, g, held, err)
		}
	}()
	alarm := alarm{limit: limit, set: time.Now()}
	defer alarm.stop()
	var over <-chan time.Time
	if !w.isFirst() {
		over = alarm.rings()
	}
	select {
	case <-w.turn:
		return s.contend(ctx, b, w, &alarm)
	case <-over: // who was before it in line may have had no answer
		held, _, err := s.attempt(ctx, b, "")
		if held == nil && err == nil {
			err = ErrHeld
		}
		return held, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// contend is what the first of a line does. What this process has it waits for
// without asking, but for a question a RetryDelay: the lock may have been
// forced open.
func (s *shared) contend(ctx context.Context, b *bid, w *waiter, alarm *alarm) (*Lock, error) {
	ear := s.bells.overhear(b.key)
	defer func() { ear.close() }()
	var poll *time.Timer
	for due, last := false, false; ; {
		bell := w.bell() // before the question, or what happens in between would go unheard
		wake := ear.wake()
		delay := s.retry(wake)
		if due || !w.busy() {
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
		if poll == nil {
			poll = time.NewTimer(delay)
			defer poll.Stop()
		} else {
			poll.Reset(delay)
		}
		due = false
		select {
		case g := <-w.gifts:
			return s.accept(ctx, b, g)
		case <-bell:
		case <-ear.change(wake):
		case <-poll.C:
			due = true
		case <-alarm.rings():
			due, last = true, true
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// retry is when to ask again, a half to the whole of RetryDelay from now; late
// for who is told of a release, and then at an instant that others of this
// process ask at too, since that costs it least.
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

// alarm rings once, limit after it was set; never where that is 0. Its timer is
// made when somebody is about to wait.
type alarm struct {
	limit time.Duration
	set   time.Time
	timer *time.Timer
}

func (a *alarm) rings() <-chan time.Time {
	if a.limit == 0 {
		return nil
	}
	if a.timer == nil {
		a.timer = time.NewTimer(time.Until(a.set.Add(a.limit)))
	}
	return a.timer.C
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

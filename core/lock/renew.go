package lock

import (
	"context"
	"time"
)

// renewals is how many times a lease is renewed before it would end.
const renewals = 3

// margin is by how much a holder thinks of a lease as shorter than it is: 1 %
// for clocks that run at different speeds, the rest for the server's clock,
// which expires by the millisecond, and for the timers of this process.
func margin(ttl time.Duration) time.Duration { return ttl/100 + 5*time.Millisecond }

// begin notes that the lock was granted, and says whether it still is: the
// answer may have come too late.
func (l *Lock) begin(ttl time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last(l.granted, ttl)
	if !time.Now().Before(l.ends) {
		l.err = ErrExpired
		return false
	}
	l.of.lines.hold(l.key, l.line)
	next := l.granted.Add(l.of.opts.TTL / renewals)
	if l.of.opts.NoRenewal || l.ends.Before(next) { // by MaxHold
		l.lapses = time.AfterFunc(time.Until(l.ends), l.lapse)
	} else {
		l.renews = time.AfterFunc(time.Until(next), l.renew)
	}
	return true
}

// last notes that the lease lasts for ttl from asked on.
func (l *Lock) last(asked time.Time, ttl time.Duration) {
	ends, final := asked.Add(ttl-margin(ttl)), false
	if most := l.of.opts.MaxHold; most != 0 {
		over := l.granted.Add(most)
		final = !asked.Add(ttl + time.Millisecond).Before(over) // the lease is of whole milliseconds
		if latest := over.Add(-margin(0)); latest.Before(ends) {
			ends = latest
		}
	}
	if ends.After(l.ends) {
		l.ends, l.final = ends, final
	}
}

// check notes that the lease is over, whatever the timers do.
func (l *Lock) check() {
	if l.err != nil || time.Now().Before(l.ends) {
		return
	}
	if l.final {
		l.lose(ErrMaxHold)
	} else {
		l.lose(ErrExpired)
	}
}

func (l *Lock) lose(err error) {
	l.stop(err)
	l.of.lines.free(l.key, l.line)
	l.of.count.lost.Add(1)
}

// stop notes why the lock is not held any more.
func (l *Lock) stop(err error) {
	l.err = err
	if l.renews != nil {
		l.renews.Stop()
	}
	if l.lapses != nil {
		l.lapses.Stop()
	}
	if l.cancel != nil {
		l.cancel(err)
	}
}

// lapse runs on a timer, at what was the end of the lease when it was set.
func (l *Lock) lapse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.check()
	if l.err == nil {
		l.lapses.Reset(time.Until(l.ends))
	}
}

// renew runs on a timer.
func (l *Lock) renew() {
	l.mu.Lock()
	l.check()
	over := l.err != nil
	if !over && l.lapses == nil {
		l.lapses = time.AfterFunc(time.Until(l.ends), l.lapse)
	}
	l.mu.Unlock()
	if over {
		return
	}
	began := time.Now()
	pause := l.of.opts.TTL / renewals
	if l.extend(context.Background(), l.of.opts.TTL) != nil {
		pause = min(pause/renewals, time.Second)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.renews.Reset(max(time.Until(began.Add(pause)), 0))
	}
}

// extend asks Redis for a longer lease, as long as MaxHold allows.
func (l *Lock) extend(ctx context.Context, ttl time.Duration) error {
	if most := l.of.opts.MaxHold; most != 0 {
		ttl = min(ttl, time.Until(l.granted.Add(most)))
	}
	ttl = max(ttl, time.Millisecond)
	n, asked, _, err := l.of.ask(ctx, extendScript, l.key, l.hold, number(l.fence), milliseconds(ttl))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.check()
	switch {
	case l.err != nil:
		return l.err
	case err != nil:
		return err
	case n > 0:
		l.last(asked, time.Duration(n)*time.Millisecond)
		return nil
	}
	l.lose(verdict(n, false))
	return l.err
}

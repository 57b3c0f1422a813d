// Package lease keeps what Redis grants for a time. It renews the lease, and it ends the
// lease for its holder before Redis can grant the same to another.
package lease

import (
	"context"
	"sync"
	"time"
)

// Renewals is how many times a lease is renewed before it would end.
const Renewals = 3

// Pause returns the time between two renewals of a lease. It is shorter after a renewal
// that failed.
func Pause(lease time.Duration, renewed bool) time.Duration {
	pause := lease / Renewals
	if !renewed {
		pause = min(pause/Renewals, time.Second)
	}
	return pause
}

// Terms are what the leases of one kind have in common.
type Terms struct {
	Wheel     *Wheel
	Lease     time.Duration
	NoRenewal bool
	MaxHold   time.Duration // 0 means no limit
	// Together renews the leases of one key together. Of each member, it has the Holder
	// as Of. If it is nil, each lease is renewed by its Holder.
	Together Renewer

	// These errors say why a lease is over: its own end, or MaxHold.
	Expired, MaxHeld error
}

// Holder is what a lease is for. All methods but Renew are called with the lease locked.
type Holder interface {
	// Renew asks Redis to let the lease last for ttl from now. It returns how long the
	// lease lasts from since on. Otherwise it returns how the lease was lost, or why
	// Redis did not say.
	Renew(ctx context.Context, ttl time.Duration) (left time.Duration, since time.Time, lost, err error)
	// Key returns the key of what is held.
	Key() string
	// Parent returns the parent of the lease's contexts. It is called only if a caller asks
	// for one.
	Parent() context.Context
	// Held is called when the lease has begun.
	Held()
	// Lost is called when the lease is over, unless End has ended it.
	Lost()
}

// Lease is the lease of one holder. It is safe for concurrent use. The zero Lease becomes
// usable with Begin.
type Lease struct {
	terms   *Terms
	holder  Holder
	granted time.Time // when it was asked for

	mu     sync.Mutex
	ends   time.Time // when the holder must regard it as over
	final  bool      // MaxHold is the reason for ends
	err    error     // why it is over
	member Member

	attached, detached child // what Context and Detached return
}

// child is a context that ends with the lease, or its zero value.
type child struct {
	context.Context

	cancel  context.CancelCauseFunc
	release context.CancelFunc // of its parent's deadline; nil if that has none of its own
}

func (c *child) end(cause error) {
	if c.Context == nil {
		return
	}
	c.cancel(cause)
	if c.release != nil {
		c.release()
	}
}

// margin is by how much a holder regards a lease as shorter than it is: 1 % for clocks
// that run at different speeds, and the rest for the server's clock, which expires keys
// by the millisecond, and for the timers of this process.
func margin(ttl time.Duration) time.Duration { return ttl/100 + 5*time.Millisecond }

// Begin notes what was granted, and when it was asked for. It reports whether the lease
// still lasts: the answer may have come too late.
func (l *Lease) Begin(h Holder, terms *Terms, granted time.Time, ttl time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holder, l.terms, l.granted = h, terms, granted
	l.last(granted, ttl)
	if !time.Now().Before(l.ends) {
		l.err = terms.Expired
		return false
	}
	h.Held()
	next := granted.Add(terms.Lease / Renewals)
	by := terms.Together
	if by == nil {
		by, l.member.Alone = l, true
	}
	if terms.NoRenewal || l.ends.Before(next) { // because of MaxHold
		by = nil
	}
	l.member.Of, l.member.Lapse = h, l.lapse
	terms.Wheel.Add(&l.member, by, h.Key(), terms.Lease, next, l.ends)
	return true
}

// Err returns why the lease is over, or nil while it lasts. It compares clocks and sends
// nothing.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.check()
	return l.err
}

// Context returns a context that ends with the lease. Its cause is what Err returns.
func (l *Lease) Context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.attached.Context == nil {
		l.begin(l.holder.Parent(), &l.attached)
	}
	return l.attached.Context
}

// Detached returns a context as Context does. Of its parent it has only the values and
// the deadline.
func (l *Lease) Detached() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.detached.Context == nil {
		parent := l.holder.Parent()
		deadline, has := parent.Deadline()
		parent = context.WithoutCancel(parent)
		if has {
			parent, l.detached.release = context.WithDeadline(parent, deadline)
		}
		l.begin(parent, &l.detached)
	}
	return l.detached.Context
}

func (l *Lease) begin(parent context.Context, c *child) {
	c.Context, c.cancel = context.WithCancelCause(parent)
	l.check()
	if l.err != nil {
		c.end(l.err)
	}
}

// Drop ends the contexts that there are, but not the lease.
func (l *Lease) Drop(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endContexts(cause)
	l.attached, l.detached = child{}, child{}
}

func (l *Lease) endContexts(cause error) {
	l.attached.end(cause)
	l.detached.end(cause)
}

// End ends the lease for that reason. If the lease was over before, it returns the
// earlier reason.
func (l *Lease) End(reason error) (before error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.check()
	before = l.err
	if before == nil {
		l.stop(reason)
	}
	return before
}

// Extend asks Redis for a longer lease, within MaxHold.
func (l *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	if most := l.terms.MaxHold; most != 0 {
		ttl = min(ttl, time.Until(l.granted.Add(most)))
	}
	ttl = max(ttl, time.Millisecond)
	return l.Renewed(l.holder.Renew(ctx, ttl))
}

// Renewed notes what [Holder.Renew] returns, and returns why the lease is over or was not
// renewed.
func (l *Lease) Renewed(left time.Duration, since time.Time, lost, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.check()
	switch {
	case l.err != nil:
		return l.err
	case err != nil:
		return err
	case lost != nil:
		l.lose(lost)
		return lost
	}
	l.last(since, left)
	return nil
}

// last notes that the lease lasts for ttl from since on.
func (l *Lease) last(since time.Time, ttl time.Duration) {
	ends, final := since.Add(ttl-margin(ttl)), false
	if most := l.terms.MaxHold; most != 0 {
		over := l.granted.Add(most)
		final = !since.Add(ttl + time.Millisecond).Before(over) // a lease is a whole number of milliseconds
		if latest := over.Add(-margin(0)); latest.Before(ends) {
			ends = latest
		}
	}
	if ends.After(l.ends) {
		l.ends, l.final = ends, final
	}
}

// check notes whether the lease is over. It does not rely on the timers.
func (l *Lease) check() {
	if l.err != nil || time.Now().Before(l.ends) {
		return
	}
	if l.final {
		l.lose(l.terms.MaxHeld)
	} else {
		l.lose(l.terms.Expired)
	}
}

func (l *Lease) lose(err error) {
	l.stop(err)
	l.holder.Lost()
}

// stop stores why the lease is over.
func (l *Lease) stop(err error) {
	l.err = err
	l.terms.Wheel.Remove(&l.member)
	l.endContexts(err)
}

// lapse runs when the lease was to end. It may have been renewed since.
func (l *Lease) lapse() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.check()
	if l.err != nil {
		return time.Time{}
	}
	return l.ends
}

// Renew makes it a [Renewer] of itself.
func (l *Lease) Renew(string, []*Member) {
	err := l.Err()
	if err == nil {
		err = l.Extend(context.Background(), l.terms.Lease)
	}
	l.SetResult(err)
}

// SetResult sets the Result of a renewal that ended with that error.
func (l *Lease) SetResult(err error) {
	switch {
	case err == nil:
		l.member.Result = Renewed
	case l.Err() != nil:
		l.member.Result = Over
	}
}

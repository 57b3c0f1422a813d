package limit

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/keyspace"
)

// accounts are the permits that a limiter has charged ahead, by subject and policies.
type accounts struct {
	opts  Prepaid
	began time.Time
	room  int

	recent atomic.Pointer[account] // the account found last; a busy subject needs no lock

	mu  sync.RWMutex
	all int
	of  map[string]map[string]*account // by subject and policies

	charges outstanding[*charging]
	permits outstanding[*permits]
}

func newAccounts(opts Prepaid, room int) *accounts {
	if opts.Most == 0 {
		return nil
	}
	return &accounts{opts: opts, began: time.Now(), room: room, of: map[string]map[string]*account{}}
}

func (a *accounts) now() int64 { return int64(time.Since(a.began)) }

// account has the permits that are charged ahead for one subject.
type account struct {
	subject, signature string

	current atomic.Pointer[permits] // nil if there are none
	next    atomic.Pointer[permits] // charged before the current ones are used up
	taken   atomic.Int64            // costs since the rate was last computed, without those that permits count

	mu        sync.Mutex
	asking    *charging // nil if no charge is on its way
	epoch     int       // counts resets
	since     int64     // when the rate was last computed
	rate      int64     // permits granted in a Term
	remaining int64     // of the limit, when Redis was last asked
}

// charging is a charge that is on its way.
type charging struct {
	answered chan struct{} // closed when the charge has ended
	err      error         // of the charge
}

// account returns the account of a subject under some policies. If there is none, it
// makes one.
func (a *accounts) account(subject, signature string) *account {
	subject = keyspace.Plain(subject)
	if one := a.recent.Load(); one != nil && one.subject == subject && one.signature == signature {
		return one
	}
	a.mu.RLock()
	one := a.of[subject][signature]
	if one != nil {
		a.recent.Store(one) // under the lock, so it cannot be forgotten meanwhile
	}
	a.mu.RUnlock()
	if one != nil {
		return one
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if one := a.of[subject][signature]; one != nil {
		return one
	}
	if a.all >= a.room {
		a.forget()
	}
	subject = strings.Clone(subject) // it may be a part of a large string
	if a.of[subject] == nil {
		a.of[subject] = map[string]*account{}
	}
	one = &account{subject: subject, signature: signature}
	a.of[subject][signature] = one
	a.all++
	a.recent.Store(one) // the recent account may be the one that was just forgotten
	return one
}

// forget makes room. It looks at a few accounts and forgets one without live permits, or
// else the last that it looked at. The permits of a forgotten account are given back when
// they end.
func (a *accounts) forget() {
	look := min(8, a.all)
	for _, all := range a.of {
		for _, one := range all {
			p := one.current.Load()
			if look--; look == 0 || p == nil || p.end <= a.now() {
				a.remove(one)
				return
			}
		}
	}
}

func (a *accounts) remove(one *account) {
	a.all--
	delete(a.of[one.subject], one.signature)
	if len(a.of[one.subject]) == 0 {
		delete(a.of, one.subject)
	}
}

// askFor charges permits, and grants a cost from them. If it grants nothing, err says why
// permits could not be charged. If err is nil too, the limiter should ask for this cost
// alone.
func (one *account) askFor(ctx context.Context, l *Limiter, d *Decision, subject string, cost int64) (granted bool, err error) {
	one.taken.Add(cost)
	q, mine := one.ask(l.accounts, cost)
	if q == nil {
		return false, nil
	}
	if mine { // other callers wait for these permits too, so the charge does not end with this caller
		background.Go(func() { one.charge(context.WithoutCancel(ctx), q, l, subject, cost) })
	}
	select {
	case <-q.answered:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if q.err != nil {
		return false, q.err
	}
	if granted = one.take(l, d, cost); granted { // the permits count this cost, so taken must not
		one.taken.Add(-cost)
	}
	return granted, nil
}

// take grants a cost from the permits that are there. When half of them are used, it
// starts the next charge.
func (one *account) take(l *Limiter, d *Decision, cost int64) bool {
	now := l.accounts.now()
	p := one.current.Load()
	if p == nil {
		return false
	}
	index, left, ok := p.take(now, cost)
	if !ok {
		next := one.next.Load()
		if next == nil || !one.current.CompareAndSwap(p, next) {
			return false
		}
		one.next.CompareAndSwap(next, nil)
		one.taken.Add(p.demand())
		p = next
		if index, left, ok = p.take(now, cost); !ok {
			return false
		}
	}
	if half := p.size / 2; left < half && left+cost >= half && one.next.Load() == nil {
		if q, mine := one.ask(l.accounts, 1); mine {
			background.Go(func() { one.charge(context.Background(), q, l, p.g.subject, 1) })
		}
	}
	var few [fewRules]reading
	readings := append(few[:0], p.g.readings...)
	for i, r := range l.rules {
		readings[i] = r.age(readings[i], (now-p.at)/int64(time.Microsecond))
	}
	l.judge(d, readings, aRequest(cost))
	d.grant, d.permits, d.index, d.cost = p.g, p, index, cost
	return true
}

// ask returns the charge to wait for, or nil if none is worthwhile. If mine is true, the
// caller must make the charge; otherwise another caller does.
func (one *account) ask(a *accounts, least int64) (q *charging, mine bool) {
	one.mu.Lock()
	defer one.mu.Unlock()
	switch {
	case one.asking != nil:
		return one.asking, false
	case one.size(a) < max(least, 2):
		return nil, false
	}
	one.asking = &charging{answered: make(chan struct{})}
	a.charges.add(one.asking)
	return one.asking, true
}

// size returns how many permits to charge: what is granted in half a Term, and at most an
// eighth of what is left.
func (one *account) size(a *accounts) int64 {
	now, term := a.now(), int64(a.opts.Term)
	for _, p := range []*permits{one.current.Load(), one.next.Load()} {
		if p != nil {
			one.taken.Add(p.demand())
		}
	}
	if passed := now - one.since; passed >= term/4 {
		one.rate = int64(float64(one.taken.Swap(0)) * float64(term) / float64(passed))
		one.since = now
	}
	return min(max(one.rate, one.taken.Load())/2, a.opts.Most, one.remaining/8)
}

// note stores how much of the limit was left after a decision that was made without the
// account.
func (one *account) note(d *Decision) {
	one.mu.Lock()
	defer one.mu.Unlock()
	one.remaining = d.Remaining
}

// charge charges permits, and then wakes the callers that wait for q.
func (one *account) charge(ctx context.Context, q *charging, l *Limiter, subject string, least int64) {
	defer func() {
		one.mu.Lock()
		one.asking = nil
		one.mu.Unlock()
		l.accounts.charges.remove(q)
		close(q.answered)
	}()
	one.mu.Lock()
	size, epoch := max(one.size(l.accounts), least), one.epoch
	one.mu.Unlock()
	g := newGrant(strings.Clone(subject), size, len(l.rules)) // it outlives the request
	g.of, g.asked = l, time.Now()
	at := l.accounts.now()
	q.err = l.take(ctx, g)
	g.answered = time.Now()
	if q.err != nil {
		return
	}
	var d Decision
	l.judge(&d, g.readings, aRequest(size))
	one.mu.Lock()
	defer one.mu.Unlock()
	one.remaining = d.Remaining
	if d.Allowed {
		one.keep(l, g, at, epoch == one.epoch)
	}
}

// keep makes charged permits available until they end. It gives them up if the subject
// was reset meanwhile.
func (one *account) keep(l *Limiter, g *grant, at int64, valid bool) {
	term := int64(l.accounts.opts.Term)
	end := at + term - term/denialDrift
	for i, r := range l.rules {
		if left, ends := r.lasts(g.readings[i]); ends {
			end = min(end, at+left-denialGrain-left/denialDrift)
		}
	}
	// Permits that are given back are granted again, so there is room for each permit
	// twice.
	p := &permits{g: g, at: at, end: end, size: g.cost, given: make([]atomic.Uint64, g.cost/32+1), returning: make(chan struct{}, 1)}
	p.add(g.cost)
	l.accounts.permits.add(p)
	p.timer = background.AfterFunc(time.Duration(end-l.accounts.now()), func() {
		_ = p.giveBack(context.Background())
	})
	if !valid {
		p.close()
		return
	}
	if !one.current.CompareAndSwap(nil, p) {
		old := one.current.Load()
		if old.left() > 0 && old.end > l.accounts.now() {
			one.next.Store(p)
		} else {
			one.current.Store(p)
			one.taken.Add(old.demand())
		}
	}
}

// drop forgets the permits of a subject that was reset. On nil accounts it does nothing.
func (a *accounts) drop(subject string) {
	if a == nil {
		return
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, one := range a.of[keyspace.Plain(subject)] {
		one.mu.Lock()
		one.epoch++
		for _, at := range []*atomic.Pointer[permits]{&one.current, &one.next} {
			if p := at.Swap(nil); p != nil {
				p.close()
				one.taken.Add(p.demand())
			}
		}
		one.mu.Unlock()
	}
}

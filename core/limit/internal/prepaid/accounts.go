// Package prepaid charges several permits of a subject at once and grants them in process.
package prepaid

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/limit/internal/cache"
	"github.com/neap-go/neap/core/limit/internal/kind"
)

// Charger charges permits.
type Charger interface {
	// Charge charges permits of a subject. It returns how many are left of the limit then, and nil
	// for a charge that was denied.
	Charge(ctx context.Context, subject string, cost int64) (charged Charge, left int64, err error)
}

// Accounts are the permits that a limiter has charged ahead, by subject and policies.
type Accounts struct {
	most  int64         // how many permits are charged at once
	term  time.Duration // how long they are kept
	began time.Time
	all   *cache.Cache[*Account]

	charges outstanding[*pending]
	permits outstanding[*Permits]
}

// New returns accounts for room subjects and policies. They charge most permits at once, at the most,
// and keep them for a term.
func New(most int64, term time.Duration, room int) *Accounts {
	return &Accounts{most: most, term: term, began: time.Now(), all: cache.New[*Account](room)}
}

func (a *Accounts) now() int64 { return int64(time.Since(a.began)) }

// Account has the permits that are charged ahead for one subject under some policies.
type Account struct {
	of  *Accounts
	set *kind.Set

	current atomic.Pointer[Permits] // nil if there are none
	next    atomic.Pointer[Permits] // charged before the current ones are used up
	taken   atomic.Int64            // costs since the rate was last computed, without those that permits count

	mu        sync.Mutex
	asking    *pending // nil if no charge is on its way
	epoch     int      // counts resets
	since     int64    // when the rate was last computed
	rate      int64    // permits granted in a Term
	remaining int64    // of the limit, when Redis was last asked
}

// pending is a charge that is on its way.
type pending struct {
	answered chan struct{} // closed when the charge has ended
	err      error         // of the charge
}

// Of returns the account of a subject under some policies. If there is none, it makes one. The
// permits of an account that is forgotten are given back when they end.
func (a *Accounts) Of(subject string, set *kind.Set) *Account {
	if one, ok := a.all.Find(subject, set.Signature); ok {
		return one
	}
	return a.all.Update(subject, set.Signature, func(one *Account, ok bool) (*Account, bool) {
		if ok {
			return one, false
		}
		return &Account{of: a, set: set}, true
	})
}

// Ask charges permits, and grants a cost from them as Take does. If it grants nothing, err says why
// permits could not be charged. If err is nil too, the limiter should ask for this cost alone.
func (one *Account) Ask(ctx context.Context, by Charger, subject string, cost int64, few []kind.Reading) (from *Permits, index int64, told []kind.Reading, err error) {
	one.taken.Add(cost)
	q, mine := one.ask(cost)
	if q == nil {
		return nil, 0, nil, nil
	}
	if mine { // other callers wait for these permits too, so the charge does not end with this caller
		background.Go(func() { one.charge(context.WithoutCancel(ctx), q, by, subject, cost) })
	}
	select {
	case <-q.answered:
	case <-ctx.Done():
		return nil, 0, nil, ctx.Err()
	}
	if q.err != nil {
		return nil, 0, nil, q.err
	}
	if from, index, told = one.Take(by, cost, few); from != nil { // the permits count this cost, so taken must not
		one.taken.Add(-cost)
	}
	return from, index, told, nil
}

// Take grants a cost from the permits that are there, if there are enough. It returns these permits,
// which of them were granted, and what the rules report, in the room of few. When half of the
// permits are used, it starts the next charge.
func (one *Account) Take(by Charger, cost int64, few []kind.Reading) (from *Permits, index int64, told []kind.Reading) {
	now := one.of.now()
	p := one.current.Load()
	if p == nil {
		return nil, 0, nil
	}
	index, left, ok := p.take(now, cost)
	if !ok {
		next := one.next.Load()
		if next == nil || !one.current.CompareAndSwap(p, next) {
			return nil, 0, nil
		}
		one.next.CompareAndSwap(next, nil)
		one.taken.Add(p.demand())
		p = next
		if index, left, ok = p.take(now, cost); !ok {
			return nil, 0, nil
		}
	}
	asked := p.Charge.Taken()
	if half := p.size / 2; left < half && left+cost >= half && one.next.Load() == nil {
		if q, mine := one.ask(1); mine {
			background.Go(func() { one.charge(context.Background(), q, by, asked.Subject, 1) })
		}
	}
	for i, r := range one.set.Rules {
		few = append(few, r.Age(asked.Readings[i], (now-p.at)/int64(time.Microsecond)))
	}
	return p, index, few
}

// ask returns the charge to wait for, or nil if none is worthwhile. If mine is true, the
// caller must make the charge; otherwise another caller does.
func (one *Account) ask(least int64) (q *pending, mine bool) {
	one.mu.Lock()
	defer one.mu.Unlock()
	switch {
	case one.asking != nil:
		return one.asking, false
	case one.size() < max(least, 2):
		return nil, false
	}
	one.asking = &pending{answered: make(chan struct{})}
	one.of.charges.add(one.asking)
	return one.asking, true
}

// size returns how many permits to charge: what is granted in half a Term, and at most an
// eighth of what is left.
func (one *Account) size() int64 {
	now, term := one.of.now(), int64(one.of.term)
	for _, p := range []*Permits{one.current.Load(), one.next.Load()} {
		if p != nil {
			one.taken.Add(p.demand())
		}
	}
	if passed := now - one.since; passed >= term/4 {
		one.rate = int64(float64(one.taken.Swap(0)) * float64(term) / float64(passed))
		one.since = now
	}
	return min(max(one.rate, one.taken.Load())/2, one.of.most, one.remaining/8)
}

// Note stores how much of the limit was left after a decision that was made without the
// account.
func (one *Account) Note(left int64) {
	one.mu.Lock()
	defer one.mu.Unlock()
	one.remaining = left
}

// charge charges permits, and then wakes the callers that wait for q.
func (one *Account) charge(ctx context.Context, q *pending, by Charger, subject string, least int64) {
	defer func() {
		one.mu.Lock()
		one.asking = nil
		one.mu.Unlock()
		one.of.charges.remove(q)
		close(q.answered)
	}()
	one.mu.Lock()
	size, epoch := max(one.size(), least), one.epoch
	one.mu.Unlock()
	at := one.of.now()
	charged, left, err := by.Charge(ctx, strings.Clone(subject), size) // it outlives the request
	if q.err = err; err != nil {
		return
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.remaining = left; charged != nil {
		one.keep(charged, at, epoch == one.epoch)
	}
}

// keep makes charged permits available until they end. It gives them up if the subject
// was reset meanwhile.
func (one *Account) keep(charged Charge, at int64, valid bool) {
	asked := charged.Taken()
	end := at + int64(one.of.term-one.of.term/kind.Drift)
	for i, r := range one.set.Rules {
		if r.Lasts {
			end = min(end, at+int64(kind.Sure(time.Duration(r.Told(asked.Readings[i]))*time.Millisecond)))
		}
	}
	// Permits that are given back are granted again, so there is room for each permit
	// twice.
	p := &Permits{Charge: charged, of: one.of, at: at, end: end, size: asked.Cost, given: make([]atomic.Uint64, asked.Cost/32+1), returning: make(chan struct{}, 1)}
	p.add(asked.Cost)
	one.of.permits.add(p)
	p.timer = background.AfterFunc(time.Duration(end-one.of.now()), func() {
		_ = p.giveBack(context.Background())
	})
	if !valid {
		p.close()
		return
	}
	if !one.current.CompareAndSwap(nil, p) {
		old := one.current.Load()
		if old.left() > 0 && old.end > one.of.now() {
			one.next.Store(p)
		} else {
			one.current.Store(p)
			one.taken.Add(old.demand())
		}
	}
}

// Drop forgets the permits of a subject that was reset. On nil accounts it does nothing.
func (a *Accounts) Drop(subject string) {
	if a == nil {
		return
	}
	for _, one := range a.all.Of(subject) {
		one.mu.Lock()
		one.epoch++
		for _, at := range []*atomic.Pointer[Permits]{&one.current, &one.next} {
			if p := at.Swap(nil); p != nil {
				p.close()
				one.taken.Add(p.demand())
			}
		}
		one.mu.Unlock()
	}
}

// Return gives back the permits that were charged ahead and not granted. It waits for charges that
// are on their way. The error joins those of all calls. On nil Accounts it does nothing.
func (a *Accounts) Return(ctx context.Context) error {
	if a == nil {
		return nil
	}
	for _, q := range a.charges.all() {
		select {
		case <-q.answered:
		case <-ctx.Done():
		}
	}
	var errs []error
	for _, p := range a.permits.all() {
		if err := ctx.Err(); err != nil { // the other permits are given back when they end
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, p.giveBack(ctx))
	}
	return errors.Join(errs...)
}

// What follows is for tests.

// Subjects are those of all accounts.
func (a *Accounts) Subjects() []string { return a.all.Subjects() }

// Charging is how many charges are on their way.
func (a *Accounts) Charging() int { return len(a.charges.all()) }

// Held returns the permits that are charged ahead for a subject, and those that were charged before
// they are used up. Each may be nil.
func (a *Accounts) Held(subject string, set *kind.Set) (current, next *Permits) {
	one, ok := a.all.Find(subject, set.Signature)
	if !ok {
		return nil, nil
	}
	return one.current.Load(), one.next.Load()
}

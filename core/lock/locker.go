package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/internal/options"
	"github.com/neap-go/neap/core/internal/ring"
	"github.com/neap-go/neap/core/internal/token"
	"github.com/neap-go/neap/core/internal/undo"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// Locker gives out locks. It is immutable and safe for concurrent use. It needs no Close:
// the connection that it opens for waiting callers is closed soon after the last of them
// has left. The zero Locker is not usable.
type Locker struct {
	*shared
	wait  time.Duration
	owner string // "" means that each hold has an owner of its own
	named bool
}

// shared is what a Locker shares with those that As and WithWait make of it.
type shared struct {
	name  string
	opts  Options
	lasts time.Duration // the lease of a new grant

	ttl, keep any // lasts and FenceRetention as arguments of scripts, made once

	process string // names this Locker in the lines of locks
	place   any    // its place in a line, as lock_acquire.lua takes it

	space    keyspace.Space
	store    *store.Store
	asker    ask.Asker
	terms    lease.Terms
	undo     undo.Undoer
	queues   queues
	notifier *notifier // nil if the client cannot subscribe
	count    counters
}

// New makes a Locker. It sends nothing.
//
// The name has 1 to 64 letters, digits, dots, dashes and underscores, and sets the keys
// of this Locker apart from others. Lockers with the same name and prefix share their
// locks, in one process or in many. Nil opts mean the zero Options.
//
// New refuses a Ring, and a struct that embeds one. Each client of a Ring chooses a
// server among those that it can reach, so two clients could hold one lock. The error
// joins all faults, each with its field and the remedy.
func New(rdb script.Client, name string, opts *Options) (*Locker, error) {
	st, unusable := store.Of(rdb)
	in, _ := inside.Of(st)
	own, err := opts.withDefaults(in)
	space, fault := in.Space("lock", name)
	if ring.Is(st.Client()) {
		unusable = errRing
	}
	if err := errors.Join(unusable, fault, err); err != nil {
		return nil, fmt.Errorf("lock.New: %w", err)
	}
	s := &shared{
		name: name, opts: own, space: space, store: st, asker: ask.Asker{Runner: ask.Runner{Inside: in, Budget: own.Budget}},
		undo: undo.Undoer{Total: in.Pending()},
	}
	s.lasts = own.Lease
	if own.MaxHold != 0 {
		s.lasts = min(own.Lease, own.MaxHold)
	}
	s.ttl, s.keep = milliseconds(s.lasts), milliseconds(own.FenceRetention)
	s.terms = lease.Terms{
		Wheel: in.Leases(), Lease: own.Lease, NoRenewal: own.NoRenewal, MaxHold: own.MaxHold,
		Expired: ErrExpired, MaxHeld: ErrMaxHold,
	}
	s.process = rand.Text()[:12]
	s.notifier = newNotifier(st.Client(), s.process, s.queues.notify)
	s.place = s.process + " " + number(stays(own.RetryDelay)) + " " + number(waits.Milliseconds())
	store.Register(st, s, (*shared).gauge, nil)
	return &Locker{shared: s, wait: own.Wait}, nil
}

// As returns a Locker whose locks all belong to one owner, in any process. The owner may
// take a lock that it already has. The lock is free for others when all holds have been
// released, in any order. Overlapping holds have the same fence.
//
// An owner should be one activity, such as the checkout of an order: activities that
// share an owner do not exclude each other. If the owner is "", every call that takes a
// key returns [ErrOwner].
func (l *Locker) As(owner string) *Locker {
	misuse.Made(l.made(), errLocker)
	return &Locker{shared: l.shared, wait: l.wait, owner: owner, named: true}
}

// WithWait returns a Locker that shares everything with l, except that its Acquire, Do,
// AcquireAll and DoAll wait for the given duration instead of Options.Wait. The duration
// is a millisecond to 24 h; WithWait returns an error for any other.
func (l *Locker) WithWait(wait time.Duration) (*Locker, error) {
	if !l.made() {
		return nil, errLocker
	}
	if wait < time.Millisecond || wait > options.MaxLease {
		return nil, fmt.Errorf("lock.WithWait: the wait is %v: use %v to %v", wait, time.Millisecond, options.MaxLease)
	}
	return &Locker{shared: l.shared, wait: wait, owner: l.owner, named: l.named}, nil
}

// Name returns the name that was given to New.
func (l *Locker) Name() string {
	misuse.Made(l.made(), errLocker)
	return l.name
}

// Owner returns the owner that was given to As. ok is false if As did not make this
// Locker.
func (l *Locker) Owner() (owner string, ok bool) {
	misuse.Made(l.made(), errLocker)
	return l.owner, l.named
}

func (l *Locker) made() bool { return l != nil && l.shared != nil }

// Do runs fn while it holds the lock. It waits for the lock as Acquire does. fn gets
// [Lock.Context], which ends when the lock is lost. Do costs what Acquire and Release
// cost.
//
// Do returns Acquire's error if fn did not run. Otherwise it returns fn's error, joined
// with the loss if the lock was lost before fn returned. So it returns nil only if fn
// returned nil and held the lock to its end. If fn panics, Do releases the lock, and the
// panic propagates.
func (l *Locker) Do(ctx context.Context, key string, fn func(ctx context.Context) error) (err error) {
	if fn == nil {
		return errFn
	}
	held, err := l.Acquire(ctx, key)
	if err != nil {
		return err
	}
	defer func() {
		if lost := held.Release(ctx); isLoss(lost) {
			err = errors.Join(err, lost)
		}
	}()
	return fn(held.Context())
}

// bid is one caller's attempt to get a lock.
type bid struct {
	key         string
	queue       string // the queue that it waits in: that of its named owner, or "" if it has none
	owner, hold any    // strings, converted to any once
	run         *run   // the run of Once that it asks for, or nil
	began       time.Time
	doubt       ask.Doubt
}

func (l *Locker) bid(ctx context.Context, key string) (*bid, error) {
	misuse.Context(ctx)
	switch {
	case !l.made():
		return nil, errLocker
	case key == "":
		return nil, ErrKey
	case l.named && l.owner == "":
		return nil, ErrOwner
	}
	b := &bid{key: l.space.Key(key, ""), hold: token.New(), began: time.Now()}
	b.owner = b.hold
	if l.named {
		b.queue = l.space.Subject(l.owner)
		b.owner = b.queue
	}
	return b, nil
}

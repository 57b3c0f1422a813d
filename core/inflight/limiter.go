package inflight

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/decisions"
	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/internal/token"
	"github.com/neap-go/neap/core/internal/undo"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// inflightPolicy is the Policy of a Slot.
const inflightPolicy = "inflight"

// retryFull is the RetryAfter of a denied Slot.
const retryFull = time.Second

// maxLimit is the highest limit of a [Limiter]. It bounds how many leases a script reads
// after the server's clock was set back.
const maxLimit = 100_000

// Limiter limits how many requests of a subject are in flight at once, in all processes
// together. Each request holds a slot with a lease. The process renews the lease while the
// request runs. If the process dies, its slots lapse. A Limiter is immutable and safe for
// concurrent use. The zero Limiter is not usable; use New or NewLocal.
//
// No more slots are granted than the limit while one Redis primary keeps its data, its
// clock does not jump ahead, and Redis makes every decision.
//
// A process that slept for longer than a lease has lost its slots. It takes them again if
// there is room. If there is none, its requests run on uncounted.
//
// If Redis comes back empty, each process has its own slots counted again before it
// admits another request of the subject. The slots of other processes count again with
// their next Try of the subject or their next renewal, after a third of the Lease at
// most. Until then more requests may be in flight than the limit, by no more than what
// these processes hold.
type Limiter struct {
	name  string
	limit int64
	opts  Options
	space keyspace.Space
	tail  string
	lease *leases // nil if slots are counted in this process alone
	undo  undo.Undoer
	held  tally
	count decisions.Counts

	store *store.Store // nil if slots are counted in this process alone
}

// New makes a limit on requests in flight: 1 to 100,000 for each
// subject. rdb is a go-redis client or a [store.Store].
//
// The name sets the Limiter's keys apart. It has 1 to 64 letters, digits, dots, dashes
// and underscores. Limiters with the same name, prefix and lease share their slots, in
// one process or in many. Their limits may differ while you change them. Nil opts mean
// the zero Options. New sends nothing to Redis.
//
// The error joins every fault, each with its field and the remedy.
func New(rdb script.Client, name string, limit int64, opts *Options) (*Limiter, error) {
	st, unusable := store.Of(rdb)
	c, err := newLimiter(st, name, limit, opts)
	if err := errors.Join(err, unusable); err != nil {
		return nil, fmt.Errorf("inflight.New: %w", err)
	}
	c.lease = newLeases(ask.NewDecider(st, c.opts.Budget), limit, c.opts.Lease)
	store.Register(st, c, (*Limiter).gauge, nil)
	return c, nil
}

// NewLocal makes a limit on requests in flight in this process: for tests, for
// development, or for a single instance. N instances together admit up to N times the limit.
// Its errors, and what nil options mean, are those of New.
func NewLocal(name string, limit int64, opts *Options) (*Limiter, error) {
	c, err := newLimiter(nil, name, limit, opts)
	if err != nil {
		return nil, fmt.Errorf("inflight.NewLocal: %w", err)
	}
	return c, nil
}

func newLimiter(st *store.Store, name string, limit int64, opts *Options) (*Limiter, error) {
	in, _ := inside.Of(st)
	own, err := opts.withDefaults(in)
	space, fault := in.Space("inflight", name)
	if limit < 1 || limit > maxLimit {
		fault = errors.Join(fmt.Errorf("limit is %d: it must be from 1 to %d", limit, maxLimit), fault)
	}
	return &Limiter{name: name, store: st, limit: limit, opts: own, space: space, tail: keyspace.Span(own.Lease), undo: undo.Undoer{Total: in.Pending()}}, errors.Join(fault, err)
}

// Try asks for a slot once and does not wait.
//
// A denied caller gets a Slot with Allowed false; releasing it does nothing. A Slot with
// Allowed true must be released, or the process holds it for ever:
//
//	slot, err := c.Try(ctx, subject)
//	if err != nil {
//		return err
//	}
//	defer slot.Release(ctx)
//	if !slot.Allowed {
//		return errBusy
//	}
//
// Try costs one round trip, and so does Release. In between, each third of a lease costs
// one for the renewal. If Redis has lost slots of the subject that this process holds, a
// grant costs one more round trip for each 1,000 of them.
//
// The error is ctx.Err() if the caller's context ended, or [ErrSubject] if the subject is
// empty. With store.FailClosed it is a [*script.Error] if Redis could not decide. If Redis may
// have granted a slot although Try returned an error, the slot is taken back in the
// background. Up to 100,000 slots are taken back at a time. Beyond that, each is released
// once; if that fails, it counts until its lease ends.
func (c *Limiter) Try(ctx context.Context, subject string) (*Slot, error) {
	if err := c.check(ctx, subject); err != nil {
		return nil, err
	}
	began := time.Now()
	s := &Slot{of: c, subject: c.space.Subject(subject)}
	err := c.acquire(ctx, s, subject)
	c.count.Add(decisions.Of(s.Allowed, err), s.Degraded)
	told := false
	defer func() { // an observer may end the goroutine, and then no caller gets the grant
		if !told && err == nil {
			background.Go(func() { _ = s.Release(context.Background()) })
		}
	}()
	c.notify(ctx, s, err, time.Since(began))
	told = true
	if err != nil {
		return nil, err
	}
	return s, nil
}

// notify tells the observers of a decision.
func (c *Limiter) notify(ctx context.Context, s *Slot, err error, took time.Duration) {
	if !c.store.Observed() {
		return
	}
	e := store.Event{
		Primitive: store.InFlight, Name: c.name, Policy: s.Policy, Cost: 1,
		Outcome: decisions.Of(s.Allowed, err).Event(), Class: store.ClassOf(err), Duration: took,
	}
	if s.Degraded {
		e.Class = store.ClassOf(s.Cause)
	}
	c.store.Notify(ctx, e)
}

func (c *Limiter) acquire(ctx context.Context, s *Slot, subject string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.lease == nil {
		c.decideLocal(s)
		return nil
	}
	s.key = c.space.Key(subject, c.tail)
	n, granted, err := c.take(ctx, s)
	switch {
	case err == nil:
		s.decide(granted, n)
		return nil
	case ask.IsCallers(err) || c.opts.Fail == store.FailClosed:
		return err
	case c.opts.Fail == store.FailOpen:
		s.Allowed, s.Degraded, s.Cause = true, true, err
		c.held.add(s.subject)
	default:
		c.decideLocal(s)
		s.Degraded, s.Cause = true, err
	}
	if s.Allowed {
		c.held.keep(s)
	}
	return nil
}

// take asks Redis for a slot under a new token. If no answer arrives, a background task
// releases it. Before take holds a slot, it makes sure that Redis counts all slots that
// this process holds of the subject.
func (c *Limiter) take(ctx context.Context, s *Slot) (n int64, granted bool, err error) {
	mine := token.New()
	asked := time.Now()
	losses, witnesses := c.held.witnesses(s.subject)
	n, denied, lost, err := c.lease.acquire(ctx, s.key, mine, witnesses)
	switch {
	case err != nil && unanswered(err):
		c.takeBack(s.key, mine, ask.Doubt{Last: asked, Calls: 1}, false)
	case err == nil && !denied && !c.held.admit(s, mine, losses, lost):
		return c.restore(ctx, s, mine)
	}
	return n, err == nil && !denied, err
}

// unanswered reports whether a call that returned err may have run nonetheless.
func unanswered(err error) bool {
	return ask.IsCallers(err) || errors.Is(err, script.ErrMaybeExecuted)
}

// mostRestored is how many slots one call restores at most.
const mostRestored = 1000

// restore asks Redis to count the slots of a subject that this process holds and Redis
// may have lost. Redis then decides again about the slot that it has just granted.
func (c *Limiter) restore(ctx context.Context, s *Slot, mine string) (n int64, granted bool, err error) {
	for {
		losses, held := c.held.toCount(s.subject, mostRestored)
		asked := time.Now()
		n, denied, there, err := c.lease.restore(ctx, s.key, mine, held)
		for i, other := range held {
			c.learn(other, asked, losses, err == nil && there[i], err)
		}
		switch {
		case err != nil && unanswered(err): // Redis has granted the slot, and may grant it again
			c.takeBack(s.key, mine, ask.Doubt{Last: asked, Calls: 2}, false)
		case err != nil:
			c.takeBack(s.key, mine, ask.Doubt{Last: asked, Calls: 1}, true)
			err = ask.Worst(true, err)
		}
		if err != nil || denied || c.held.admit(s, mine, losses, false) {
			return n, err == nil && !denied, err
		}
	}
}

// learn stores whether Redis counts a slot that was to be restored, when so many losses had
// been noted. If the slot was released meanwhile, learn takes it back.
func (c *Limiter) learn(s *Slot, asked time.Time, losses int, there bool, err error) {
	in := ask.Doubt{Last: asked}
	if err != nil && unanswered(err) {
		in.Calls = 1
	}
	if released := c.held.learn(s, losses, there, err, in); released && (there || in.Calls > 0) {
		c.takeBack(s.key, s.token, ask.Doubt{Last: asked, Calls: 1}, there)
	}
}

// takeBack releases a slot in the background until it is gone. granted says that Redis
// certainly granted the slot; then one answer that it is not there is proof enough.
func (c *Limiter) takeBack(key, token string, in ask.Doubt, granted bool) {
	in.TakeBack(c.undo.Start, c.opts.Lease, granted, func() (found bool, err error) {
		return c.lease.release(context.Background(), key, token)
	})
}

func (c *Limiter) decideLocal(s *Slot) {
	n, granted := c.held.addBelow(s.subject, c.limit)
	s.decide(granted, n)
}

// decide notes the decision when n requests of the subject are in flight.
func (s *Slot) decide(granted bool, n int64) {
	s.Allowed, s.Policy, s.Limit = granted, inflightPolicy, s.of.limit
	if granted {
		s.Remaining = max(s.Limit-n, 0)
	} else {
		s.RetryAfter = retryFull
	}
}

// InFlight returns how many requests of a subject are in flight, in all processes
// together. It costs one round trip and changes nothing. The failure mode does not apply:
// the errors are [ErrSubject], ctx.Err() and a [*script.Error]. A local Limiter
// returns how many slots it holds itself, and sends nothing.
func (c *Limiter) InFlight(ctx context.Context, subject string) (int64, error) {
	if err := c.check(ctx, subject); err != nil {
		return 0, err
	}
	if c.lease == nil {
		return c.held.of(c.space.Subject(subject)), ctx.Err()
	}
	return c.lease.count(ctx, c.space.Key(subject, c.tail))
}

// Warm connects to Redis, loads the scripts on every node of a cluster, and counts the slots
// of one subject. It changes no slot. Its errors and its time limit are those of Warm of a
// limit.Limiter. A local Limiter sends nothing.
func (c *Limiter) Warm(ctx context.Context) error {
	if err := c.check(ctx, "warm"); err != nil {
		return err
	}
	if c.lease == nil {
		return ctx.Err()
	}
	return c.lease.warm(ctx, c.space.Key("warm", c.tail))
}

// Name returns the name that was given to New. It panics on a nil or zero
// Limiter.
func (c *Limiter) Name() string {
	misuse.Made(c.made(), errLimiter)
	return c.name
}

func (c *Limiter) made() bool { return c != nil && c.limit > 0 }

// check returns what is wrong with a call.
func (c *Limiter) check(ctx context.Context, subject string) error {
	misuse.Context(ctx)
	switch {
	case !c.made():
		return errLimiter
	case subject == "":
		return ErrSubject
	}
	return nil
}

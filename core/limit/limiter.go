package limit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/internal/decisions"
	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/internal/undo"
	"github.com/neap-go/neap/core/limit/internal/cells"
	"github.com/neap-go/neap/core/limit/internal/denials"
	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/core/limit/internal/line"
	"github.com/neap-go/neap/core/limit/internal/prepaid"
	"github.com/neap-go/neap/core/limit/internal/wire"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// Limiter decides whether a subject may take permits under one or more policies: all of
// them grant, or none is charged. It is immutable and safe for concurrent use. The zero
// Limiter is not usable; use New, NewLocal or With.
type Limiter struct {
	name      string
	opts      Options
	set       *kind.Set
	space     keyspace.Space
	remote    *wire.Remote // nil if the state is in process
	local     *cells.Cells
	count     *counters
	observers observers
	queues    *line.Queues
	memory    *denials.Memory        // nil if no denials are remembered
	accounts  *prepaid.Accounts      // nil if no permits are prepaid
	late      *undo.Undoer           // repeats conclusions that Redis did not confirm
	instances *atomic.Int64          // Options.Instances, or the last SetInstances
	refused   *request               // that of remembered denials
	plans     *plans                 // all limiters that With made
	policies  []Policy               // nil unless they can be overridden
	overrides *overrides             // nil unless policies can be overridden
	denials   func() *denials.Memory // that All remembers
	origin    *Limiter               // that New made; With's limiters keep it alive
	first     decider                // of a request that costs something: see deciders (layers.go)
}

// New makes a limiter whose state is in Redis. rdb is a go-redis client or a
// [store.Store].
//
// The name sets the limiter's keys apart from those of other limiters. It has 1 to 64
// letters, digits, dots, dashes and underscores. Limiters with the same name, prefix and
// policy share their state, in one process or in many. Nil opts mean the zero Options.
// New sends nothing to Redis.
//
// The error joins every fault, each with its field and the remedy.
func New(rdb script.Client, name string, policies []Policy, opts *Options) (*Limiter, error) {
	st, unusable := store.Of(rdb)
	l, err := newLimiter(st, name, policies, opts)
	if err := errors.Join(err, unusable); err != nil {
		return nil, fmt.Errorf("limit.New: %w", err)
	}
	l.remote = wire.New(wire.NewAsker(st, l.opts.Budget), l.space, l.set)
	store.Register(st, l, (*Limiter).gauge, (*Limiter).returnPrepaid)
	return l, nil
}

// NewLocal makes a limiter that keeps its state in this process: for tests, for
// development, or for a single instance. It decides by the same arithmetic as New, and
// returns the same errors. N instances admit N times the limit, whatever
// Options.Instances is.
func NewLocal(name string, policies []Policy, opts *Options) (*Limiter, error) {
	l, err := newLimiter(nil, name, policies, opts)
	if err != nil {
		return nil, fmt.Errorf("limit.NewLocal: %w", err)
	}
	return l, nil
}

// newLimiter makes a limiter without a remote. Its keys are those of the store.
func newLimiter(st *store.Store, name string, policies []Policy, opts *Options) (*Limiter, error) {
	in, _ := inside.Of(st)
	own, fault := opts.withDefaults(in)
	rules, err := own.compile(policies)
	fault = errors.Join(fault, checkLocal(own.MaxLocal, rules))
	space, spaceFault := in.Space("limit", name)
	count := new(counters)
	l := &Limiter{
		name:      name,
		opts:      own,
		space:     space,
		local:     cells.New(space, own.MaxLocal, st != nil && own.Fail == store.FailLocal),
		count:     count,
		observers: observers{store: st, name: name},
		queues:    line.New(own.MaxWaiting, &count.waiting),
		instances: new(atomic.Int64),
		plans:     newPlans(mostPlans),
		late:      &undo.Undoer{Total: in.Pending()},
		denials:   sync.OnceValue(func() *denials.Memory { return denials.New(mostRemembered, own.MaxLocal) }),
	}
	l.instances.Store(int64(own.Instances))
	if st != nil {
		l.memory = denials.New(own.RememberDenials, own.MaxLocal)
		if own.Prepaid.Most > 0 {
			l.accounts = prepaid.New(own.Prepaid.Most, own.Prepaid.Term, own.MaxLocal)
		}
	}
	l.first = l.deciders()
	if own.Overrides {
		l.policies, l.overrides = valuesOf(policies), newOverrides(own.MaxLocal)
	}
	l.over(rules)
	if l.overrides != nil {
		l.overrides.first = l.set
	}
	return l, errors.Join(err, spaceFault, fault)
}

// over makes the limiter one over these rules.
func (l *Limiter) over(rules []*kind.Rule) *Limiter {
	l.set = kind.NewSet(rules, l.opts.Holds)
	l.set.Overrides = l.opts.Overrides
	l.refused = &request{of: l, denied: true}
	return l
}

// With returns a limiter with other policies and the same name, options and state, for
// example for one tenant or one plan. If two of these limiters have a policy in common,
// they share its state. Stats count the decisions of all of them.
//
// You may call With for every request: it keeps the last 16,384 limiters that were asked
// for, and returns the same limiter for equal policies, unless a type of your own has fields
// that refer to something else. It sends nothing. The error joins every fault of the
// policies, each with its field and the remedy.
func (l *Limiter) With(policies ...Policy) (*Limiter, error) {
	if !l.made() {
		return nil, errLimiter
	}
	return l.plans.of(policies, func() (*Limiter, error) { return l.with(policies) })
}

func (l *Limiter) with(policies []Policy) (*Limiter, error) {
	rules, err := l.opts.compile(policies)
	if err := errors.Join(err, checkLocal(l.opts.MaxLocal, rules)); err != nil {
		return nil, fmt.Errorf("limit.With: %w", err)
	}
	other := *l
	other.origin = cmp.Or(l.origin, l)
	if l.overrides != nil {
		other.policies = valuesOf(policies)
	}
	other.over(rules)
	if l.remote != nil {
		other.remote = wire.New(l.remote.Asker, l.space, other.set)
	}
	return &other, nil
}

// Take asks for one permit. It costs one round trip, whatever the number of policies;
// [CalendarWindow], [Prepaid] and [Limiter.Override] say when it costs more. It costs
// none if a denial is repeated (Options.RememberDenials), if the permit was charged ahead
// ([Prepaid]), or if the limiter is local.
//
// A denial is a Decision, not an error. The error is ctx.Err() if the caller's context
// ended, or [ErrSubject] if the subject is empty. With FailClosed it is a [*script.Error]
// if Redis could not decide.
func (l *Limiter) Take(ctx context.Context, subject string) (Decision, error) {
	return l.TakeN(ctx, subject, 1)
}

// TakeN asks for n permits at once: all or none are granted. TakeN(0) is allowed and
// writes nothing. If n is below 0, or above the capacity of an enforced policy, the error
// is a [*CostError] and nothing is sent. The other errors are those of Take.
func (l *Limiter) TakeN(ctx context.Context, subject string, n int64) (Decision, error) {
	return l.decide(ctx, subject, n, false)
}

// Peek reports whether Take would be granted, and takes nothing. Its figures are those
// before the take. It costs one round trip, or none if the limiter is local. The errors
// are those of Take. If Redis cannot decide, the failure mode does.
func (l *Limiter) Peek(ctx context.Context, subject string) (Decision, error) {
	return l.PeekN(ctx, subject, 1)
}

// PeekN is Peek for n permits at once. RetryAfter is how long until TakeN would grant
// them. The errors are those of TakeN.
func (l *Limiter) PeekN(ctx context.Context, subject string, n int64) (Decision, error) {
	return l.decide(ctx, subject, n, true)
}

func (l *Limiter) made() bool { return l != nil && l.set != nil }

// check returns what is wrong with a call.
func (l *Limiter) check(ctx context.Context, subject string, cost int64) error {
	misuse.Context(ctx)
	if !l.made() {
		return errLimiter
	}
	if subject == "" {
		return cmp.Or(l.checkCost(cost), ErrSubject)
	}
	return l.fits(ctx, subject, cost)
}

func (l *Limiter) decide(ctx context.Context, subject string, cost int64, peek bool) (Decision, error) {
	if err := l.check(ctx, subject, cost); err != nil {
		return Decision{}, err
	}
	d, took, err := l.ask(ctx, subject, cost, peek)
	if !peek {
		l.tell(ctx, cost, &d, err, took)
	}
	return d, err
}

// tell counts a decision and tells the observers, unless nothing was decided.
func (l *Limiter) tell(ctx context.Context, cost int64, d *Decision, err error, took time.Duration) {
	if errors.Is(err, ErrQueue) || errors.Is(err, ErrCost) {
		return
	}
	l.count.Add(decisions.Of(d.Allowed, err), d.Degraded)
	l.observers.notify(ctx, cost, d, err, took)
}

// ask decides, without Redis if possible. took is how long Redis took.
func (l *Limiter) ask(ctx context.Context, subject string, cost int64, peek bool) (d Decision, took time.Duration, err error) {
	if l.overrides != nil {
		return l.askKnowing(ctx, subject, cost, peek)
	}
	return l.askAs(ctx, subject, cost, peek, nil)
}

// askAs decides under the policies of this limiter, whatever others the subject may have, and
// without Redis if there is a cause.
func (l *Limiter) askAs(ctx context.Context, subject string, cost int64, peek bool, cause error) (d Decision, took time.Duration, err error) {
	if cause != nil || cost == 0 || peek || ctx.Err() != nil {
		return l.request(ctx, subject, cost, peek, cause)
	}
	return l.first.decide(ctx, l, subject, cost)
}

// Name returns the name that was given to New or NewLocal. It panics on a nil or zero
// Limiter.
func (l *Limiter) Name() string {
	misuse.Made(l.made(), errLimiter)
	return l.name
}

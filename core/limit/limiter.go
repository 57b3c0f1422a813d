package limit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/script"
)

const (
	// DefaultPrefix begins every key where Options.Prefix is empty.
	DefaultPrefix = "neap"
	// DefaultBudget is the most time a decision takes where Options.Budget is 0.
	DefaultBudget = 50 * time.Millisecond
	// DefaultMaxLocal is how many states a local limiter keeps where
	// Options.MaxLocal is 0.
	DefaultMaxLocal = 100_000
)

// Options are a limiter's options. The zero value is ready to use; it is
// copied by the constructors. All but MaxLocal are for limiters on Redis.
type Options struct {
	// Prefix begins every key, of up to 64 printable ASCII characters; empty
	// means DefaultPrefix. Spaces and braces are refused.
	Prefix string
	// Budget is the most time a decision takes, whatever the client's own
	// timeouts are; 0 means DefaultBudget.
	Budget time.Duration
	// SubjectSecret, when set, keeps subjects out of Redis: every one is
	// stored as its HMAC-SHA256 under this key, of at least 16 bytes. Changing
	// it starts all over.
	SubjectSecret []byte
	// MaxLocal is how many states, one for each subject and policy, a local
	// limiter keeps before it forgets the one longest unused, which then
	// starts afresh; 0 means DefaultMaxLocal.
	MaxLocal int
}

// Limiter decides whether a subject may take permits under one or more
// policies, all or nothing. It is immutable and safe for concurrent use. The
// zero Limiter is not usable: New, NewLocal and With make one.
type Limiter struct {
	name    string
	opts    Options
	rules   []rule
	backend backend
}

// backend holds the state: Redis, or this process.
type backend interface {
	// take charges the cost, or nothing at all, and tells every rule's state.
	take(ctx context.Context, l *Limiter, subject string, cost int64, into []reading) error
	reset(ctx context.Context, l *Limiter, subject string) error
	// with prepares the backend for other rules on the same state.
	with(rules []rule) backend
}

// New makes a limiter on Redis. The name sets its keys apart from those of
// other limiters; limiters of one name, prefix and policy share their state,
// in one process or in many. It sends nothing.
//
// The error joins every fault, each with its field and the remedy.
func New(rdb script.Client, name string, policies []Policy, opts *Options) (*Limiter, error) {
	l, space, err := newLimiter(name, policies, opts)
	runner, fault := script.NewRunner(rdb, &script.Options{Budget: cmp.Or(max(l.opts.Budget, 0), DefaultBudget)})
	if err := errors.Join(err, fault); err != nil {
		return nil, fmt.Errorf("limit.New: %w", err)
	}
	l.backend = newRemote(runner, space, l.rules)
	return l, nil
}

// NewLocal makes a limiter that keeps its state in this process: for tests,
// for development, for a single instance. It decides by the same arithmetic
// as New; N instances admit N times the limit.
func NewLocal(name string, policies []Policy, opts *Options) (*Limiter, error) {
	l, _, err := newLimiter(name, policies, opts)
	if err != nil {
		return nil, fmt.Errorf("limit.NewLocal: %w", err)
	}
	l.backend = newLocal(l.opts.MaxLocal)
	return l, nil
}

func newLimiter(name string, policies []Policy, opts *Options) (*Limiter, keyspace, error) {
	l := &Limiter{name: name}
	if opts != nil {
		l.opts = *opts
		l.opts.SubjectSecret = bytes.Clone(opts.SubjectSecret)
	}
	rules, err := compile(policies)
	space, fault := newKeyspace(name, &l.opts)
	err = errors.Join(err, fault)
	if l.opts.Budget < 0 {
		err = errors.Join(err, fmt.Errorf("Budget is %v: use a positive duration, or 0 for %v", l.opts.Budget, DefaultBudget))
	}
	if l.opts.SubjectSecret != nil && len(l.opts.SubjectSecret) < 16 {
		err = errors.Join(err, fmt.Errorf(
			"SubjectSecret has %d bytes: use at least 16, or nil for none", len(l.opts.SubjectSecret)))
	}
	if l.opts.MaxLocal < 0 {
		err = errors.Join(err, fmt.Errorf("MaxLocal is %d: use a positive number, or 0 for %d", l.opts.MaxLocal, DefaultMaxLocal))
	}
	l.rules = rules
	return l, space, err
}

// With makes a limiter with other policies on the same name, options and
// state: a tenant's, or a plan's. Make it once and keep it; a policy that two
// limiters have in common they share.
func (l *Limiter) With(policies ...Policy) (*Limiter, error) {
	rules, err := compile(policies)
	if err != nil {
		return nil, fmt.Errorf("limit.With: %w", err)
	}
	other := *l
	other.rules = rules
	other.backend = l.backend.with(rules)
	return &other, nil
}

// Take asks for one permit. It costs one round trip, like every call of a
// limiter on Redis, whatever the number of policies.
//
// A denial is a Decision, not an error. The error is ctx.Err() when the
// caller's context ended, [ErrSubject] for an empty subject, and otherwise a
// [*script.Error], which says that Redis could not answer.
func (l *Limiter) Take(ctx context.Context, subject string) (Decision, error) {
	return l.TakeN(ctx, subject, 1)
}

// TakeN asks for n permits at once, all or none. TakeN(0) is allowed and
// writes nothing. An n below 0 or above the capacity of a policy is a
// [*CostError], and nothing is sent.
func (l *Limiter) TakeN(ctx context.Context, subject string, n int64) (Decision, error) {
	if err := l.checkCost(n); err != nil {
		return Decision{}, err
	}
	return l.decide(ctx, subject, n, false)
}

// Peek tells whether Take would be granted, and takes nothing: its figures are
// those before the take.
func (l *Limiter) Peek(ctx context.Context, subject string) (Decision, error) {
	return l.decide(ctx, subject, 0, true)
}

// Reset forgets what the subject has taken under every policy of the limiter.
func (l *Limiter) Reset(ctx context.Context, subject string) error {
	if subject == "" {
		return ErrSubject
	}
	return l.backend.reset(ctx, l, subject)
}

func (l *Limiter) decide(ctx context.Context, subject string, cost int64, peek bool) (Decision, error) {
	if subject == "" {
		return Decision{}, ErrSubject
	}
	var few [4]reading
	readings := few[:]
	if len(l.rules) > len(few) {
		readings = make([]reading, len(l.rules))
	}
	readings = readings[:len(l.rules)]
	if err := l.backend.take(ctx, l, subject, cost, readings); err != nil {
		return Decision{}, err
	}
	return l.decision(readings, cost, peek), nil
}

// decision turns readings into what the caller sees.
func (l *Limiter) decision(readings []reading, cost int64, peek bool) Decision {
	d := Decision{Allowed: true}
	if len(l.rules) > 1 {
		d.rest = make([]State, 0, len(l.rules)-1)
	}
	for i, r := range l.rules {
		s := r.state(readings[i], cost)
		if peek && s.Remaining < 1 {
			s.Allowed, s.RetryAfter = false, s.NextAfter
		}
		if i == 0 {
			d.first = s
		} else {
			d.rest = append(d.rest, s)
		}
		d.Allowed = d.Allowed && s.Allowed
		if i == 0 || binds(&s, &d) {
			d.Policy, d.Limit, d.Remaining = s.Policy, s.Limit, s.Remaining
			d.RetryAfter, d.ResetAfter = s.RetryAfter, s.ResetAfter
		}
	}
	return d
}

// binds says whether a state binds more than the one the decision tells of.
func binds(s *State, d *Decision) bool {
	if s.RetryAfter != d.RetryAfter {
		return s.RetryAfter > d.RetryAfter
	}
	return s.Remaining < d.Remaining
}

func (l *Limiter) checkCost(cost int64) error {
	tightest := l.rules[0].id()
	for _, r := range l.rules[1:] {
		if r.id().limit < tightest.limit {
			tightest = r.id()
		}
	}
	if cost < 0 || cost > tightest.limit {
		return &CostError{Cost: cost, Capacity: tightest.limit, Policy: tightest.name}
	}
	return nil
}

// Name is the limiter's name.
func (l *Limiter) Name() string { return l.name }

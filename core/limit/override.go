package limit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/core/limit/internal/wire"
	"github.com/neap-go/neap/core/script"
)

// Override gives a subject other policies for d from now, in all processes that share the
// limiter, without a deployment: for example a customer whose limit support raises for a
// day. What the subject has used counts on. It replaces what an earlier Override gave the
// subject. [Limiter.EndOverride] ends it.
//
// Each policy replaces the limiter's policy of the same kind that has the same Window, or the
// same Every and Location. If there are several, give it the Name of one. Leave out terms such
// as Shadow, and the Unit: those of the policy that it replaces stay, as do policies that none
// replaces. The same holds for limiters that [Limiter.With] made.
//
// A process learns of the change with its next decision about the subject, which takes three
// round trips instead of one. Until then it repeats denials that it remembers,
// for up to Options.RememberDenials. In an outage each process decides by what it has
// learned. A process knows of the overrides of up to MaxLocal subjects; beyond that it
// forgets, and learns anew. A limiter of [NewLocal], which has nowhere to learn, forgets the
// override then.
//
// d must be above 0, and is rounded up to whole milliseconds. Override costs one round trip,
// and is safe for concurrent use. The error is [ErrSubject] if the subject is empty,
// [ErrNoOverride] without Options.Overrides, ctx.Err() if the caller's context ended, and a
// [*script.Error] if Redis did not confirm it. It names each policy that is faulty or
// replaces none of the limiter's.
func (l *Limiter) Override(ctx context.Context, subject string, d time.Duration, policies ...Policy) error {
	if err := l.checkOverride(ctx, subject); err != nil {
		return err
	}
	if d <= 0 {
		return fmt.Errorf("limit.Override: d is %v: it lasts at least a millisecond; use EndOverride to end it", d)
	}
	if len(policies) == 0 {
		return errors.New("limit.Override: policies is empty: give at least one Policy, or use EndOverride")
	}
	if _, faults := replaced(l.policies, policies); faults != nil {
		return fmt.Errorf("limit.Override: %w", errors.Join(faults...))
	}
	text, err := Policies(policies).MarshalText()
	if err != nil {
		return fmt.Errorf("limit.Override: %w", err)
	}
	_, _, err = l.override(ctx, subject, string(text), min(kind.CeilDiv(int64(d), int64(time.Millisecond)), kind.MostBan))
	return err
}

// EndOverride ends what Override has given the subject. found reports whether there was
// anything to end. It costs one round trip. Its errors are those of [Limiter.Override].
func (l *Limiter) EndOverride(ctx context.Context, subject string) (found bool, err error) {
	if err := l.checkOverride(ctx, subject); err != nil {
		return false, err
	}
	was, _, err := l.override(ctx, subject, "", 0)
	return was != "", err
}

// Overridden returns the policies that Override has given the subject, and how long they
// still count; none and 0 if there are none. It asks Redis, and costs one round trip. Its
// errors are those of [Limiter.Override]. If a later version of neap has written the
// policies, they may be unreadable, and the error says so.
func (l *Limiter) Overridden(ctx context.Context, subject string) (Policies, time.Duration, error) {
	if err := l.checkOverride(ctx, subject); err != nil {
		return nil, 0, err
	}
	text, left, err := l.override(ctx, subject, "", -1)
	if err != nil || text == "" {
		return nil, 0, err
	}
	var policies Policies
	err = policies.UnmarshalText([]byte(text))
	return policies, time.Duration(left) * time.Millisecond, err
}

func (l *Limiter) checkOverride(ctx context.Context, subject string) error {
	if err := l.check(ctx, subject, 0); err != nil {
		return err
	}
	if l.overrides == nil {
		return ErrNoOverride
	}
	return ctx.Err()
}

// override gives a subject policies for duration milliseconds. With 0 it ends that, and with -1 it
// only asks. It returns what there was before.
func (l *Limiter) override(ctx context.Context, subject, text string, duration int64) (was string, left int64, err error) {
	asked := time.Now()
	switch was, left = l.overrides.of(subject, asked); {
	case l.remote == nil && duration < 0:
		return was, left, nil
	case l.remote != nil:
		if was, left, err = l.remote.Override(ctx, subject, text, duration); err != nil {
			return "", 0, err
		}
	}
	if duration < 0 {
		text, duration = was, left
	}
	l.overrides.learn(subject, text, asked.Add(time.Duration(duration)*time.Millisecond))
	l.changed(subject)
	return was, left, nil
}

// mostLearned is how many times in a row a decision asks anew because the policies of its subject
// have changed.
const mostLearned = 3

// decided calls decide with the limiter that decides about a subject. If the subject has other policies
// than this process knows, it learns them and calls decide again. If it cannot, it calls decide with the
// cause; decide then decides once without Redis. decide reports whether Redis has decided before.
func (l *Limiter) decided(ctx context.Context, subject string, decide func(l *Limiter, cause error) (answered bool, err error)) error {
	if l.overrides == nil {
		_, err := decide(l, nil)
		return err
	}
	var cause error
	for learned := 0; ; {
		answered, err := decide(l.deciding(subject), cause)
		if err != wire.ErrOverridden {
			return err
		}
		if answered {
			learned = 0
		}
		if learned++; learned <= mostLearned {
			_, _, cause = l.override(ctx, subject, "", -1)
		} else { // a caller that waits on afterwards learns anew
			learned, cause = 0, &script.Error{Script: l.remote.Script.Name(), Class: script.ErrFailed, Err: wire.ErrOverridden}
		}
	}
}

// askKnowing is ask for a limiter whose policies may be overridden.
func (l *Limiter) askKnowing(ctx context.Context, subject string, cost int64, peek bool) (d Decision, took time.Duration, err error) {
	err = l.decided(ctx, subject, func(l *Limiter, cause error) (answered bool, err error) {
		if err = l.checkCost(cost); err == nil {
			d, took, err = l.askAs(ctx, subject, cost, peek, cause)
		}
		return false, err
	})
	return d, took, err
}

// fits checks a cost against the policies that count for the subject. If it is too large for those
// that this process knows, it learns what the subject has in Redis.
func (l *Limiter) fits(ctx context.Context, subject string, cost int64) error {
	err := l.deciding(subject).checkCost(cost)
	if err == nil || l.overrides == nil || l.remote == nil || cost < 0 || ctx.Err() != nil {
		return err
	}
	if _, _, unknown := l.override(ctx, subject, "", -1); unknown != nil {
		return err
	}
	return l.deciding(subject).checkCost(cost)
}

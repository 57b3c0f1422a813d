package idempotency

import (
	"context"
	"errors"
	"fmt"
)

// A Policy says what to do with a run if it is not known how far it came: its process is
// gone, or it ended with [Unknown]. It is a [Retry], a [Reject] or a [Reconcile].
//
// There is no default, because none suits all work. With Retry, work may be done twice,
// such as a charge. With Reject and Reconcile, work may wait until you call
// [Guard.Resolve].
type Policy interface {
	word() string // as the script wants it
}

// Retry runs the work again. Claim.Attempt is then above 1. It suits work that does
// nothing a second time, such as what one transaction does under a unique key.
type Retry struct{}

// Reject refuses the work with [ErrInDoubt] until [Guard.Resolve] is called. Without that
// call, the work runs again when Options.DoubtRetention has passed.
type Reject struct{}

// Reconcile asks a function what became of the run. The example of [Outcome] shows one.
type Reconcile struct {
	// Find finds out what became of an earlier run, for example by asking the payment
	// provider, or the database in which the work was done. It gets the claim of the
	// caller and that claim's context, so no other caller asks at the same time. ctx ends
	// with the call, or when the claim is lost.
	//
	// If it returns [NothingDone], the caller does the work. If it returns [DoneWith] or
	// [DoneWithout], the run is concluded as if the earlier run had said so. If it
	// returns an error or [Unknown], the work stays in doubt, and the next caller asks
	// again. It must be set, and safe for concurrent use for different keys.
	Find func(ctx context.Context, c *Claim) (Outcome, error)
}

func (Retry) word() string     { return "retry" }
func (Reject) word() string    { return "reject" }
func (Reconcile) word() string { return "reconcile" }

// retries reports whether work in doubt runs again.
func retries(p Policy) bool {
	_, ok := p.(Retry)
	return ok
}

// checkPolicy returns an error with the remedy for a policy that a Guard cannot have.
func checkPolicy(p Policy) error {
	switch p := p.(type) {
	case Retry, Reject:
		return nil
	case Reconcile:
		if p.Find == nil {
			return errors.New("policy: Reconcile.Find is nil: give it a function that finds out what became of a run")
		}
		return nil
	case nil:
		return errors.New("policy is nil: if it is not known whether a run was done, Retry{} runs it again, Reject{} refuses it until you call Resolve, and Reconcile{Find: …} asks a function of yours; use one of them")
	}
	return fmt.Errorf("policy is a %T: use Retry{}, Reject{} or Reconcile{Find: …}", p)
}

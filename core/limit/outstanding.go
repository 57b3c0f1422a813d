package limit

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/neap-go/neap/core/internal/misuse"
)

// outstanding is a set of what has to end before the process does: charges that are on
// their way, or permits that are not given back. Unlike the accounts, it forgets none.
type outstanding[T comparable] struct {
	mu  sync.Mutex
	set map[T]struct{}
}

func (o *outstanding[T]) add(one T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.set == nil {
		o.set = map[T]struct{}{}
	}
	o.set[one] = struct{}{}
}

func (o *outstanding[T]) remove(one T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.set, one)
}

func (o *outstanding[T]) all() []T {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.set))
}

// ReturnPrepaid gives back the permits that were charged ahead and not granted. Call it
// before the process ends; otherwise they stay taken until their windows end, or until
// they have refilled. A process that keeps running need not call it: it gives them back
// when their Term ends.
//
// It waits for charges that are on their way. For each subject with prepaid permits it
// costs up to two round trips, and more if the clock of Redis must be read again. It costs
// none if the limiter is not [Prepaid]. It is safe for concurrent use, but permits that are
// charged after it has begun may stay until their Term ends. store.Drain does not wait for
// it. The error joins the errors of all calls.
func (l *Limiter) ReturnPrepaid(ctx context.Context) error {
	misuse.Context(ctx)
	if !l.made() {
		return errLimiter
	}
	if l.accounts == nil {
		return nil
	}
	for _, q := range l.accounts.charges.all() {
		select {
		case <-q.answered:
		case <-ctx.Done():
		}
	}
	var errs []error
	for _, p := range l.accounts.permits.all() {
		if err := ctx.Err(); err != nil { // the other permits are given back when they end
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, p.giveBack(ctx))
	}
	return errors.Join(errs...)
}

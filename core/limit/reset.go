package limit

import (
	"context"
	"time"
)

// Reset forgets what the subject has taken under every policy of the limiter, in Redis
// and in this process. found reports whether there was anything to forget; if not, the
// subject may be misspelled. Reset lifts a hold ([Limiter.Hold]), and no ban:
// [Limiter.Unban] does that. It costs one round trip.
//
// A sliding log in Redis may be stored for a while after its permits no longer count;
// found is true for such a log too.
//
// The error is [ErrSubject] if the subject is empty, ctx.Err() if the caller's context
// ended, and otherwise a [*script.Error]. After a [*script.Error], this process has
// forgotten its own state, and Redis may not have.
func (l *Limiter) Reset(ctx context.Context, subject string) (found bool, err error) {
	if err := l.check(ctx, subject, 0); err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	holds := l.holds()
	held := l.local.Ban(holds, subject, 0) > 0
	found = l.local.Reset(l.set, subject) || held
	l.accounts.Drop(subject)
	if l.remote == nil {
		l.changed(subject)
		return found, nil
	}
	asked := time.Now()
	there, err := l.remote.Reset(ctx, subject)
	l.local.Answered(holds, subject, 0, asked, nil)
	l.changed(subject)
	l.accounts.Drop(subject) // again, for charges that were on their way
	l.local.Forget(l.set, subject)
	return found || there, err
}

package limit

import (
	"context"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
)

// Hold puts a subject on hold for d from now, in Redis and in this process: every request of
// the subject is denied until then, whatever its policies have left. It is for a partner
// that wants no requests for a while. If the subject is on hold for longer already, nothing
// changes. [Decision.OnHold] reports the hold, and [Limiter.Reset] lifts it.
//
// Unlike a [Ban], a hold never doubles, and it applies to the limiter as a whole, also to the
// limiters that With made from it. If all policies are shadows, the hold is a shadow, too, and
// [Decision.OnHold] is false.
// In an outage it lasts in each process that knows of it: one that has asked for it, or
// that Redis has told of it with a decision.
//
// d must be above 0, and is rounded up to whole milliseconds. Hold costs one round trip.
// The error is [ErrSubject] if the subject is empty, [ErrNoHold] without Options.Holds,
// ctx.Err() if the caller's context ended, and otherwise a [*script.Error]. After an error
// of Redis the hold lasts in this process, for decisions without Redis, and it may last in
// Redis.
func (l *Limiter) Hold(ctx context.Context, subject string, d time.Duration) error {
	if err := l.check(ctx, subject, 0); err != nil {
		return err
	}
	switch {
	case !l.opts.Holds:
		return ErrNoHold
	case d <= 0:
		return fmt.Errorf("limit: d is %v: a hold lasts at least a millisecond; use Reset to lift one", d)
	}
	_, err := l.bar(ctx, l.holds(), subject, min(kind.CeilDiv(int64(d), int64(time.Millisecond)), kind.MostBan))
	return err
}

// holds returns the hold of a limiter that may have one.
func (l *Limiter) holds() []*kind.Ban {
	if !l.opts.Holds {
		return nil
	}
	return []*kind.Ban{kind.Hold}
}

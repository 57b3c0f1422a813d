package limit

import (
	"context"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
)

// Ban bans a subject for d from now, under every policy of the limiter that has a [Ban],
// in Redis and in this process. It replaces a ban that still lasts, whether longer or
// shorter, and the denials counted so far. If the policy itself begins the next ban, that
// ban is twice as long, as after any ban. d must be above 0, and is rounded up to whole
// milliseconds.
//
// It costs one round trip. The error is [ErrSubject] if the subject is empty, [ErrNoBan]
// if no policy of the limiter has a Ban, ctx.Err() if the caller's context ended, and
// otherwise a [*script.Error]. After an error of Redis the ban holds in this process, for
// all decisions without Redis until it ends, and it may hold in Redis.
func (l *Limiter) Ban(ctx context.Context, subject string, d time.Duration) error {
	if l.made() && d <= 0 {
		return fmt.Errorf("limit: d is %v: a ban lasts at least a millisecond; use Unban to lift one", d)
	}
	_, err := l.bans(ctx, subject, min(kind.CeilDiv(int64(d), int64(time.Millisecond)), kind.MostBan))
	return err
}

// Unban lifts the subject's bans under every policy of the limiter, in Redis and in this
// process, and forgets its earlier denials and bans. It reports whether the subject was
// banned. What the policies themselves have counted stays; Reset forgets that. Another
// process that remembers the ban may deny for up to Options.RememberDenials longer. If it
// does not hear from Redis, it denies until the ban would have ended.
//
// It costs one round trip. Its errors are those of [Limiter.Ban]. After an error of Redis
// the ban is lifted in this process, for decisions without Redis, and it may last in
// Redis.
func (l *Limiter) Unban(ctx context.Context, subject string) (found bool, err error) {
	left, err := l.bans(ctx, subject, 0)
	return left > 0, err
}

// Banned returns how long the subject is still banned, by the longest ban of the enforced
// policies; 0 means that it is not banned. It asks Redis, and costs one round trip. Its
// errors are those of [Limiter.Ban].
func (l *Limiter) Banned(ctx context.Context, subject string) (time.Duration, error) {
	left, err := l.bans(ctx, subject, -1)
	return time.Duration(left) * time.Millisecond, err
}

// bans makes a ban of duration milliseconds. With 0 it lifts all bans, and with -1 it
// only asks. It returns how long the longest ban would still have lasted before.
func (l *Limiter) bans(ctx context.Context, subject string, duration int64) (left int64, err error) {
	if err := l.check(ctx, subject, 0); err != nil {
		return 0, err
	}
	if !l.set.Bans {
		return 0, ErrNoBan
	}
	var bans []*kind.Ban
	for _, b := range l.set.Bars {
		if b.Counts() && (duration >= 0 || !b.Shadow) {
			bans = append(bans, b.Ban)
		}
	}
	return l.bar(ctx, bans, subject, duration)
}

// bar begins, lifts or asks about some bans, or the hold; see bans.
func (l *Limiter) bar(ctx context.Context, bans []*kind.Ban, subject string, duration int64) (left int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if duration >= 0 {
		defer l.changed(subject)
	}
	asked := time.Now()
	if l.remote == nil || duration >= 0 {
		left = l.local.Ban(bans, subject, duration)
	}
	if l.remote == nil || len(bans) == 0 {
		return left, nil
	}
	lefts, err := l.remote.Ban(ctx, bans, subject, duration)
	for _, there := range lefts {
		left = max(left, there)
	}
	l.local.Answered(bans, subject, duration, asked, lefts)
	return left, err
}

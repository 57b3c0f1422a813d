package limit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/neap-go/neap/core/internal/reply"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

var banScript = script.FromFS(lua.FS, "limit_ban.lua").Batched()

// mostBan is the longest ban in milliseconds; a time.Duration can hold no more.
const mostBan = int64(math.MaxInt64 / time.Millisecond)

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
	_, err := l.bans(ctx, subject, min(ceilDiv(int64(d), int64(time.Millisecond)), mostBan))
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
	if !slices.ContainsFunc(l.rules, hasBan) {
		return 0, ErrNoBan
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	var rules []rule
	for _, r := range l.rules {
		if hasBan(r) && (duration >= 0 || !r.id().shadow) {
			rules = append(rules, r)
		}
	}
	if duration >= 0 {
		defer l.changed(subject)
	}
	asked := time.Now()
	if l.remote == nil || duration >= 0 {
		left = l.local.bans(l, rules, subject, duration)
	}
	if l.remote == nil || len(rules) == 0 {
		return left, nil
	}
	lefts, err := l.remote.bans(ctx, rules, subject, duration)
	for _, there := range lefts {
		left = max(left, there)
	}
	l.local.answered(l, rules, subject, duration, asked, lefts)
	return left, err
}

// bansOf returns the keys of a subject's ban records.
func (r *remote) bansOf(rules []rule, subject string) (keys []string) {
	for _, rule := range rules {
		if b := rule.id().ban; b != nil {
			keys = append(keys, r.space.Key(subject, b.tail))
		}
	}
	return keys
}

// bans returns how long each ban would still have lasted before.
func (r *remote) bans(ctx context.Context, rules []rule, subject string, duration int64) (lefts []int64, err error) {
	args := append(make([]any, 0, 1+len(rules)), integer(duration))
	for _, rule := range rules {
		args = append(args, integer(rule.id().ban.most))
	}
	told, err := r.Run(ctx, banScript.Replies(nil, reply.List(len(rules), reply.Any)), r.bansOf(rules, subject), args...)
	if err != nil {
		return nil, err
	}
	lefts, _ = reply.Numbers(told)
	if slices.ContainsFunc(lefts, func(left int64) bool { return !isBan(left) }) {
		return nil, broken(banScript)
	}
	return lefts, nil
}

// isBan reports whether a ban may last for that many milliseconds.
func isBan(left int64) bool { return left >= 0 && left <= mostBan }

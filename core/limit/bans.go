package limit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

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
// decisions without Redis, and it may hold in Redis.
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
// process that remembers the ban may deny for up to Options.RememberDenials longer. It
// costs one round trip. Its errors are those of [Limiter.Ban].
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
		l.seeds.lift(l, subject)
		defer l.changed(subject)
	}
	if l.remote == nil || duration >= 0 {
		left = l.local.bans(l, rules, subject, duration)
	}
	if l.remote == nil || len(rules) == 0 {
		return left, nil
	}
	there, err := l.remote.bans(ctx, rules, subject, duration)
	return max(left, there), err
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

func (r *remote) bans(ctx context.Context, rules []rule, subject string, duration int64) (left int64, err error) {
	args := append(make([]any, 0, 1+len(rules)), integer(duration))
	for _, rule := range rules {
		args = append(args, integer(rule.id().ban.most))
	}
	reply, err := r.Run(ctx, banScript, r.bansOf(rules, subject), args...)
	if err != nil {
		return 0, err
	}
	left, ok := reply.(int64)
	if !ok || left < 0 || left > mostBan {
		return 0, &script.Error{Script: banScript.Name(), Class: script.ErrFailed, Err: errReply}
	}
	return left, nil
}

// bans does in Go what limit_ban.lua does.
func (b *local) bans(l *Limiter, rules []rule, subject string, duration int64) (left int64) {
	subject = l.space.Subject(subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now() / 1000
	for _, r := range rules {
		key := localKey{subject, r.id().ban.tail}
		if c, ok := b.cells.Peek(key); ok {
			left = max(left, c.ban.left(now))
		}
		switch {
		case duration > 0:
			b.cells.Add(key, &cell{ban: &record{last: now + duration, length: duration}})
		case duration == 0:
			b.cells.Remove(key)
		}
	}
	return left
}

// recordOf returns the record of a subject. It is new if nothing is stored, and nil if
// the rule has no ban.
func (b *local) recordOf(subject string, r rule) *record {
	if !hasBan(r) {
		return nil
	}
	if c, ok := b.cells.Get(localKey{subject, r.id().ban.tail}); ok {
		return c.ban
	}
	return new(record)
}

// keepRecords stores the records in which a denial was counted.
func (b *local) keepRecords(subject string, rules []rule, cells []*cell) {
	for i, r := range rules {
		if hasBan(r) && *cells[i].ban != (record{}) {
			if key := (localKey{subject, r.id().ban.tail}); !b.cells.Contains(key) {
				b.cells.Add(key, &cell{ban: cells[i].ban})
			}
		}
	}
}

// readBans reads the numbers of bans, which follow those of all policies.
func readBans(rules []rule, numbers []any, into []reading) (ok bool) {
	for i, r := range rules {
		if !hasBan(r) {
			continue
		}
		if len(numbers) == 0 {
			return false
		}
		if into[i].ban, ok = numbers[0].(int64); !ok || into[i].ban < 0 || into[i].ban > mostBan {
			return false
		}
		numbers = numbers[1:]
	}
	return len(numbers) == 0
}

package limit

import (
	"context"

	"github.com/neap-go/neap/core/internal/reply"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

var resetScript = script.FromFS(lua.FS, "limit_reset.lua").Batched().Replies(reply.From(0), nil)

// Reset forgets what the subject has taken under every policy of the limiter, in Redis
// and in this process. found reports whether there was anything to forget; if not, the
// subject may be misspelled. Reset does not lift bans; [Limiter.Unban] does. It costs one
// round trip.
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
	found = l.local.reset(l, subject)
	l.accounts.drop(subject)
	if l.remote == nil {
		l.changed(subject)
		return found, nil
	}
	there, err := l.remote.reset(ctx, l, subject)
	l.changed(subject)
	l.accounts.drop(subject) // again, for charges that were on their way
	l.seeds.drop(l, subject)
	return found || there, err
}

func (r *remote) reset(ctx context.Context, l *Limiter, subject string) (found bool, err error) {
	keys := make([]string, 0, len(l.rules))
	for _, rule := range l.rules {
		keys = append(keys, r.space.Key(subject, rule.id().tail))
		switch rule.(type) {
		case *window, *calendar: // in another process the policy may have a lease
			keys = append(keys, r.estimatesOf(rule, subject))
		}
	}
	reply, err := r.Run(ctx, resetScript, keys)
	n, _ := reply.(int64)
	return n > 0, err
}

// reset reports whether anything of the subject was still in use. It must look, because a
// cell stays until its room is needed or it is asked for again.
func (b *local) reset(l *Limiter, subject string) (found bool) {
	subject = l.space.Subject(subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for _, r := range l.rules {
		key := localKey{subject, r.id().tail}
		if c, ok := b.cells.Peek(key); ok {
			before := len(c.log)
			r.advance(c, now)
			b.entries += len(c.log) - before
			found = r.state(r.read(c, 0), 0).ResetAfter > 0 || found
			b.cells.Remove(key)
		}
	}
	return found
}

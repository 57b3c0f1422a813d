package limit

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

var (
	acquireScript = script.FromFS(lua.FS, "inflight_acquire.lua").Batched()
	restoreScript = script.FromFS(lua.FS, "inflight_restore.lua").Batched()
	renewScript   = script.FromFS(lua.FS, "inflight_renew.lua").Batched().Essential()
	releaseScript = script.FromFS(lua.FS, "inflight_release.lua").Batched().Essential()
	countScript   = script.FromFS(lua.FS, "inflight_count.lua").Batched()
)

// leases runs the scripts on a sorted set of leases.
type leases struct {
	*asker

	limit, lease, longest any
}

func newLeases(at *asker, limit int64, lease time.Duration) *leases {
	return &leases{
		asker: at,
		limit: integer(limit),
		lease: integer(lease.Microseconds()),
		// The set outlives its last lease, which ends between two milliseconds.
		longest: integer(lease.Milliseconds() + 1),
	}
}

// witnesses are the tokens of two slots that the caller holds. Both are empty if it holds
// none, and the same if it holds one.
type witnesses [2]string

// witnessesLost is added to the reply of a grant if Redis has neither witness.
const witnessesLost = 1_000_000

// acquire asks for a slot. lost is true if the slot was granted and Redis has neither
// witness.
func (l *leases) acquire(ctx context.Context, key, token string, w witnesses) (n int64, denied, lost bool, err error) {
	n, err = l.run(ctx, acquireScript, key, token, l.limit, l.lease, l.longest, w[0], w[1])
	n, denied = readSigned(n)
	if lost = !denied && n >= witnessesLost; lost {
		n -= witnessesLost
	}
	return n, denied, lost, err
}

// restore asks Redis to count held slots again, and then to decide about token. there[i]
// is false if there was no room for held[i].
func (l *leases) restore(ctx context.Context, key, token string, held []*Slot) (n int64, denied bool, there []bool, err error) {
	args := append(make([]any, 0, 4+len(held)), token, l.limit, l.lease, l.longest)
	for _, s := range held {
		args = append(args, s.token)
	}
	reply, err := l.Run(ctx, restoreScript, []string{key}, args...)
	if err != nil {
		return 0, false, nil, err
	}
	numbers, _ := reply.([]any)
	ok := len(numbers) == 1+len(held)
	for i, number := range numbers {
		one, is := number.(int64)
		ok = ok && is
		if i == 0 {
			n, denied = readSigned(one)
		} else {
			there = append(there, one == 1)
		}
	}
	if !ok {
		return 0, false, nil, &script.Error{Script: restoreScript.Name(), Class: script.ErrFailed, Err: errReply}
	}
	return n, denied, there, nil
}

func (l *leases) renew(ctx context.Context, key, token string) (there bool, err error) {
	n, err := l.run(ctx, renewScript, key, token, l.lease, l.longest)
	return n == 1, err
}

func (l *leases) release(ctx context.Context, key, token string) (found bool, err error) {
	n, err := l.run(ctx, releaseScript, key, token)
	return n == 1, err
}

func (l *leases) count(ctx context.Context, key string) (int64, error) {
	return l.run(ctx, countScript, key)
}

func (l *leases) run(ctx context.Context, s *script.Script, key string, args ...any) (int64, error) {
	reply, err := l.Run(ctx, s, []string{key}, args...)
	if err != nil {
		return 0, err
	}
	n, ok := reply.(int64)
	if !ok {
		return 0, &script.Error{Script: s.Name(), Class: script.ErrFailed, Err: errReply}
	}
	return n, nil
}

func (l *leases) warm(ctx context.Context, key string) error {
	return ask.Warm(ctx, l.store, ask.About(countScript, key),
		acquireScript, restoreScript, renewScript, releaseScript, countScript)
}

package inflight

import (
	"context"
	"strconv"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/reply"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

var (
	acquireScript = script.FromFS(lua.FS, "inflight_acquire.lua").Batched().Replies(func(n int64) bool { return n != 0 }, nil)
	restoreScript = script.FromFS(lua.FS, "inflight_restore.lua").Batched()
	renewScript   = script.FromFS(lua.FS, "inflight_renew.lua").Batched().Essential()
	releaseScript = script.FromFS(lua.FS, "inflight_release.lua").Batched().Essential().Replies(reply.OneOf(0, 1), nil)
	countScript   = script.FromFS(lua.FS, "inflight_count.lua").Batched().Replies(reply.From(0), nil)
)

// leases runs the scripts on a sorted set of leases.
type leases struct {
	*ask.Decider

	wheel                 *lease.Wheel
	limit, lease, longest any
}

func newLeases(at *ask.Decider, limit int64, length time.Duration) *leases {
	return &leases{
		Decider: at, wheel: at.Inside.Leases(),
		limit: number(limit),
		lease: number(length.Microseconds()),
		// The set outlives its last lease, which ends between two milliseconds.
		longest: number(length.Milliseconds() + 1),
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
	n, denied = reply.Signed(n)
	if lost = !denied && n >= witnessesLost; lost {
		n -= witnessesLost
	}
	return n, denied, lost, err
}

// restore asks Redis to count held slots again, and then to decide about token, unless it
// is empty. there[i] is false if there was no room for held[i].
func (l *leases) restore(ctx context.Context, key, token string, held []*Slot) (n int64, denied bool, there []bool, err error) {
	args := append(make([]any, 0, 4+len(held)), token, l.limit, l.lease, l.longest)
	for _, s := range held {
		args = append(args, s.token)
	}
	runner := &l.Runner
	if token == "" { // no caller waits
		runner = &l.Keeper
	}
	told, err := runner.Run(ctx, restoreScript.Replies(nil, reply.List(1+len(held), reply.Any)), []string{key}, args...)
	if err != nil {
		return 0, false, nil, err
	}
	numbers, _ := reply.Numbers(told)
	n, denied = reply.Signed(numbers[0])
	for _, one := range numbers[1:] {
		there = append(there, one == 1)
	}
	return n, denied, there, nil
}

// renew renews slots of one key. there[i] reports whether Redis has slots[i].
func (l *leases) renew(key string, slots []*Slot) (there []bool, err error) {
	args := append(make([]any, 0, 2+len(slots)), l.lease, l.longest)
	for _, s := range slots {
		args = append(args, s.token)
	}
	return l.Renew(renewScript, key, args, len(slots))
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
	n, _ := reply.(int64)
	return n, err
}

func (l *leases) warm(ctx context.Context, key string) error {
	return ask.Warm(ctx, l.Store, ask.About(countScript, key),
		acquireScript, restoreScript, renewScript, releaseScript, countScript)
}

func number(n int64) any { return strconv.FormatInt(n, 10) }

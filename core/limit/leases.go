package limit

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

var (
	acquireScript = script.New("inflight_acquire.lua", lua.InflightAcquire)
	renewScript   = script.New("inflight_renew.lua", lua.InflightRenew)
	releaseScript = script.New("inflight_release.lua", lua.InflightRelease)
	countScript   = script.New("inflight_count.lua", lua.InflightCount)
)

// leases are the scripts on a sorted set of leases.
type leases struct {
	door                  *door
	limit, lease, longest any
}

func newLeases(d *door, limit int64, lease time.Duration) *leases {
	return &leases{
		door:  d,
		limit: integer(limit),
		lease: integer(lease.Microseconds()),
		// The set outlives the last lease in it, which ends between two milliseconds.
		longest: integer(lease.Milliseconds() + 1),
	}
}

func (l *leases) acquire(ctx context.Context, key, token string) (n int64, denied bool, err error) {
	n, err = l.run(ctx, acquireScript, key, token, l.limit, l.lease, l.longest)
	n, denied = readSigned(n)
	return n, denied, err
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
	reply, err := l.door.run(ctx, s, []string{key}, args...)
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
	return l.door.warm(ctx, func(ctx context.Context, patient *door) error {
		asked := leases{door: patient}
		_, err := asked.count(ctx, key)
		return err
	}, acquireScript, renewScript, releaseScript, countScript)
}

package inflight

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// TestEachCommandFails makes each command of each script fail in turn. A slot that is not
// granted leaves nothing behind, and no set is left without a time to live.
func TestEachCommandFails(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	admin, prefix, seen := srv.Admin(t), srv.Prefix(t), map[string]bool{}
	const limit, token = 3, "own"
	now := redistest.Time(t, admin).UnixMicro()
	lapsed, alive, future := now-time.Hour.Microseconds(), now+time.Hour.Microseconds(), now+24*time.Hour.Microseconds()
	l := newTestLeases(t, admin, limit, 2*time.Hour)
	key := prefix + ":{leases}"
	for name, c := range map[string]struct {
		held slots
		ttl  time.Duration
	}{
		"fresh":                  {slots{}, 0},
		"in use":                 {slots{"a": alive}, 2 * time.Hour},
		"its own":                {slots{"a": alive, token: alive}, 2 * time.Hour},
		"full":                   {slots{"a": alive, "b": alive, "c": alive}, 2 * time.Hour},
		"full, its own":          {slots{"a": alive, "b": alive, token: alive}, 2 * time.Hour},
		"full, immortal":         {slots{"a": alive, "b": alive, "c": alive}, 0},
		"full, from the future":  {slots{"a": future, "b": future, "c": alive}, 30 * time.Hour},
		"partly lapsed":          {slots{"a": lapsed, "b": alive, "c": lapsed}, 2 * time.Hour},
		"partly lapsed, its own": {slots{"a": lapsed, "b": alive, token: lapsed}, 2 * time.Hour},
	} {
		admin.Del(t.Context(), key)
		for member, ends := range c.held {
			admin.ZAdd(t.Context(), key, redis.Z{Score: float64(ends), Member: member})
		}
		if c.ttl > 0 {
			admin.PExpire(t.Context(), key, c.ttl)
		}
		before := redistest.Save(t, admin, []string{key})
		for _, a := range []struct {
			script *script.Script
			keys   []string
			args   []any
		}{
			{acquireScript, []string{key}, []any{token, l.limit, l.lease, l.longest, "a", "b"}},
			{restoreScript, []string{key}, []any{token, l.limit, l.lease, l.longest, "a", "held"}},
			{restoreScript, []string{key}, []any{"", l.limit, l.lease, l.longest, "a", token}},
			{renewScript, []string{key}, []any{l.lease, l.longest, token, "a"}},
			{releaseScript, []string{key}, []any{token}},
			{countScript, []string{key}, nil},
		} {
			where := fmt.Sprintf("%s, %s", a.script.Name(), name)
			seen[a.script.Name()] = true
			redistest.FailEach(t, admin, redistest.Attempt{Source: a.script.Source(), Keys: a.keys, Args: a.args}, before, where, nil)
			if a.script != acquireScript && a.script != restoreScript || c.held[token] != 0 {
				continue
			}
			for n := 1; ; n++ {
				redistest.Restore(t, admin, before)
				if admin.Eval(t.Context(), redistest.Failing(a.script.Source(), n), a.keys, a.args...).Err() == nil {
					break
				}
				if _, ok := stored(t, admin, key)[token]; ok {
					t.Errorf("%s: got the slot taken after command %d failed, want none", where, n)
				}
			}
		}
		admin.Del(t.Context(), key) // or the last state of all may never expire
	}
	redistest.AllFailed(t, seen, "inflight_")
}

package limit

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

// failLeases makes each command of each script on leases fail in turn. A slot that is not
// granted leaves nothing behind, and no set is left without a time to live.
func failLeases(t *testing.T, admin *redis.Client, prefix string, seen map[string]bool) {
	t.Helper()
	const limit, token = 3, "own"
	now := serverTime(t, admin).UnixMicro()
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
		for _, a := range []attempt{
			{acquireScript, []string{key}, []any{token, l.limit, l.lease, l.longest, "a", "b"}},
			{restoreScript, []string{key}, []any{token, l.limit, l.lease, l.longest, "a", "held"}},
			{restoreScript, []string{key}, []any{"", l.limit, l.lease, l.longest, "a", token}},
			{renewScript, []string{key}, []any{l.lease, l.longest, token, "a"}},
			{releaseScript, []string{key}, []any{token}},
			{countScript, []string{key}, nil},
		} {
			where := fmt.Sprintf("%s, %s", a.script.Name(), name)
			seen[a.script.Name()] = true
			failEach(t, admin, a, before, where)
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
	}
	admin.Del(t.Context(), key)
}

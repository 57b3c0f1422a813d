package lock_test

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

// TestEachCommandMadeToFail makes each command of each script fail in turn, in every
// state of a record. The reply is then an error, no hold is granted without its caller
// being told, and no record is left without a TTL.
func TestEachCommandMadeToFail(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	key := prefix + ":lock:test:{key}"
	const ttl, keep, forever = 30 * time.Second, time.Minute, 0
	held := map[string]any{"fence": 7, "ttl": ttl.Milliseconds(), "keep": keep.Milliseconds()}
	record := func(more ...any) map[string]any {
		all := maps.Clone(held)
		for i := 0; i < len(more); i += 2 {
			all[more[i].(string)] = more[i+1]
		}
		return all
	}
	states := map[string]struct {
		record map[string]any
		lives  time.Duration
	}{
		"fresh":                      {nil, forever},
		"free":                       {map[string]any{"fence": 7}, keep},
		"free, immortal":             {map[string]any{"fence": 7}, forever},
		"another's":                  {record("owner", "other", "hold:x", ""), ttl + keep},
		"another's, awaited":         {record("owner", "other", "hold:x", "", "wake", "PUBLISH"), ttl + keep},
		"another's, in line":         {record("owner", "other", "hold:x", "", "wake", "PUBLISH a 9000000000000000"), ttl + keep},
		"its own, in line":           {record("owner", "own", "hold:own", "", "wake", "SPUBLISH a 1 b 9000000000000000"), ttl + keep},
		"free, for the first":        {map[string]any{"fence": 7, "wake": "PUBLISH own 1 b 9000000000000000"}, keep},
		"free, for another":          {map[string]any{"fence": 7, "wake": "PUBLISH a 1 own 9000000000000000"}, keep},
		"its only hold's":            {record("owner", "me", "hold:me", ""), ttl + keep},
		"another's, immortal":        {record("owner", "other", "hold:x", ""), forever},
		"another's, from the future": {record("owner", "other", "hold:x", ""), ttl + keep + time.Hour},
		"lapsed":                     {record("owner", "other", "hold:x", "", "hold:y", "", "hold:z", ""), keep / 2},
		"lapsed, its own":            {record("owner", "me", "hold:own", "", "hold:x", ""), keep / 2},
		"its owner's":                {record("owner", "me", "hold:x", ""), ttl + keep},
		"its own":                    {record("owner", "me", "hold:own", "", "wake", "PUBLISH"), ttl + keep},
		"its own, nested":            {record("owner", "me", "hold:own", "", "hold:x", "", "wake", "SPUBLISH"), ttl + keep},
		"its own, immortal":          {record("owner", "me", "hold:own", "", "wake", "SPUBLISH"), forever},
		"its own, from the future":   {record("owner", "me", "hold:own", ""), ttl + keep + time.Hour},
		"forced open":                {map[string]any{"fence": 7, "owner": "other"}, keep},
		"another's run":              {record("owner", "x", "hold:x", "", "open", ""), ttl + keep},
		"a dead run":                 {record("owner", "x", "hold:x", "", "open", ""), keep / 2},
		"its own run":                {record("owner", "own", "hold:own", "", "open", "", "wake", "PUBLISH"), ttl + keep},
		"its own dead run":           {record("owner", "own", "hold:own", "", "open", ""), keep / 2},
		"a run that failed":          {map[string]any{"fence": 7, "open": ""}, keep},
	}
	now := time.Now().UnixMilli()
	seen := map[string]bool{}
	for _, c := range []struct {
		file   string
		args   []any
		grants bool
	}{
		{"lock_acquire.lua", []any{"me", "own", ttl.Milliseconds(), keep.Milliseconds(), "PUBLISH"}, true},
		{"lock_acquire.lua", []any{"me", "own", ttl.Milliseconds(), keep.Milliseconds(), "PUBLISH", "own 400 100"}, true},
		{"lock_leave.lua", []any{"own"}, false},
		{"lock_extend.lua", []any{"own", 7, 2 * ttl.Milliseconds()}, false},
		{"lock_release.lua", []any{"own", 7}, false},
		{"lock_release.lua", []any{"me", 7, "own", ttl.Milliseconds(), keep.Milliseconds()}, true},
		{"lock_force.lua", nil, false},
		{"lock_inspect.lua", nil, false},
		{"once_start.lua", []any{"own", ttl.Milliseconds(), keep.Milliseconds(), now, "again", "PUBLISH"}, true},
		{"once_start.lua", []any{"own", ttl.Milliseconds(), keep.Milliseconds(), now, "never", ""}, true},
		{"once_end.lua", []any{"own", 7, "completed"}, false},
		{"once_end.lua", []any{"own", 7, "failed"}, false},
		{"once_end.lua", []any{"own", 7, "undone"}, false},
	} {
		seen[c.file] = true
		for name, s := range states {
			if name == "forced open" && strings.HasPrefix(c.file, "once_") {
				continue // a tick cannot be forced open
			}
			admin.Del(t.Context(), key)
			if s.record != nil {
				admin.HSet(t.Context(), key, s.record)
			}
			if s.lives != forever {
				admin.PExpire(t.Context(), key, s.lives)
			}
			where := c.file + ", " + name
			_, had := s.record["hold:own"]
			check := func(n int) {
				if !c.grants || had {
					return
				}
				outlives, err := strconv.ParseInt(admin.HGet(t.Context(), key, "keep").Val(), 10, 64)
				if err == nil && admin.HExists(t.Context(), key, "hold:own").Val() &&
					admin.PTTL(t.Context(), key).Val().Milliseconds() > outlives {
					t.Errorf("%s: got a hold after command %d failed, want none", where, n)
				}
			}
			attempt := redistest.Attempt{Source: script.FromFS(lua.FS, c.file).Source(), Keys: []string{key}, Args: c.args}
			redistest.FailEach(t, admin, attempt, redistest.Save(t, admin, attempt.Keys), where, check)
		}
	}
	admin.Del(t.Context(), key)
	redistest.AllFailed(t, seen, "lock_", "once_")
}

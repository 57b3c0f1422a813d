package lua_test

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/script/scripttest"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// TestNoScriptHasATrap makes the library's calls of each script, granted and denied, on
// each kind of server.
func TestNoScriptHasATrap(t *testing.T) {
	t.Parallel()
	for file := range calls {
		if !slices.Contains(files, file) {
			t.Errorf("calls_test.go: got calls of %s, want only scripts that exist", file)
		}
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			scripttest.Run(t, script.FromFS(lua.FS, file), calls[file]...)
		})
	}
}

// on makes a call, on one key or on several keys of one subject.
func on(keys []string, args ...any) scripttest.Call {
	return scripttest.Call{Keys: keys, Args: args}
}

// after makes a call that comes after a call of another script, which makes the state.
func (s made) then(args ...any) scripttest.Call {
	c := on(one, args...)
	c.Prepare = func(tb testing.TB, rdb redis.UniversalClient, keys []string) {
		tb.Helper()
		for _, key := range keys {
			if err := rdb.Eval(tb.Context(), s.source, []string{key}, s.args...).Err(); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return c
}

type made struct {
	source string
	args   []any
}

var (
	one    = []string{"{ann}"}
	many   = []string{"{ann}:1", "{ann}:2", "{ann}:1", "{ann}:3"}
	banned = []string{"{ann}:banned", "{ann}:ban"}
	leased = []string{"{ann}:leased", "{ann}:estimates"}
	all    = []string{"{ann}:bucket", "{ann}:fast", "{ann}:window", "{ann}:sliding", "{ann}:log"}

	acquired = made{script.FromFS(lua.FS, "lock_acquire.lua").Source(), []any{"o", "h", 60_000, 90_000, ""}}
	alone    = made{script.FromFS(lua.FS, "lock_acquire.lua").Source(), []any{"p", "p", 60_000, 90_000, ""}}
	wanted   = made{script.FromFS(lua.FS, "lock_acquire.lua").Source(), []any{"p", "p", 60_000, 90_000, "PUBLISH"}}
	started  = made{script.FromFS(lua.FS, "once_start.lua").Source(), []any{"h", 60_000, 90_000, 9e14, "again", ""}}
	begun    = made{script.FromFS(lua.FS, "guard_begin.lua").Source(), []any{"o", "print", "60000 90000 retry"}}
	dead     = made{script.FromFS(lua.FS, "guard_begin.lua").Source(), []any{"o", "print", "0 90000 retry"}}
	flying   = made{script.FromFS(lua.FS, "inflight_acquire.lua").Source(), []any{"t", 2, 30_000_000, 60_000, "", ""}}
)

// calls are typical calls of each script. The calls of one script use the same keys.
var calls = map[string][]scripttest.Call{
	"limit_bucket.lua":      {on(one, 1, 3, 1, 60_000), on(one, 2, 3, 1, 60_000), on(one, 9, 3, 1, 60_000), on(one, 0, 3, 1, 60_000)},
	"limit_bucket_fast.lua": {on(one, 1, 3, 2, 1000, 60_000), on(one, 9, 3, 2, 1000, 60_000), on(all[1:2], 1, 3, 1, 1000, 60_000)},
	"limit_bucket_kept.lua": {on(one, 1, 3, 1, 1000, 3), on(one, 2, 3, 1, 1000, 9), on(one, 9, 3, 1, 1000, 3), on(one, 0, 3, 1, 1000, 3), on(all[1:2], 9, 3, 1, 1000, 3)},
	"limit_window.lua":      {on(one, 1, 2, 60_000, 9), on(one, 1, 2, 60_000), on(one, 1, 2, 60_000), on(one, 1, 2, 60_000), on(one, 0, 2, 60_000)},
	"limit_calendar.lua": {
		on(one, 1, 2, 0, 1, 2, 9_000_000_000_000), on(one, 1, 2, 0, 9_000_000_000_000, 9_000_000_000_001, 9_000_000_000_002),
		on(one, 1, 2, 0, 1, 9_000_000_000_000, 9_000_000_000_001), on(one, 0, 2, 0, 1, 2, 9_000_000_000_000), on(one, 1, 2, 0, 1, 2, 3)},
	"limit_sliding.lua": {on(one, 1, 2, 60_000), on(one, 1, 2, 60_000), on(one, 1, 2, 60_000),
		on(all[1:2], 9, 9, 60_000, 99), on(all[1:2], 1, 2, 60_000, 99), on(all[1:2], 0, 2, 60_000, 99)},
	"limit_many.lua": {
		on(many, "bucket", 3, 1, 60_000, 0, 1, 2, 2, 1, 1, 3, 0, 1), on(many, "bucket", 3, 2, 60_000, 0, 1, 5, 2, 1, 1, 3, 0, 1),
		on(many, "bucket_fast", 3, 2, 1000, 60_000, 1, 2, 2, 1, 1, 3, 0, 1), on(many, "bucket_fast", 3, 1, 1000, 60_000, 1, 2, 2, 1, 1, 3, 0, 1),
		on(many, "window", 3, 60_000, 0, 0, 1, 2, 2, 1, 1, 3, 0, 1), on(many, "sliding", 3, 60_000, 0, 0, 1, 2, 2, 1, 1, 3, 0, 1),
	},
	"limit_log.lua": {on(one, 1, 3, 60_000_000, 120_000, -3), on(one, 2, 3, 60_000_000, 120_000, -2),
		on(one, 1, 3, 60_000_000, 120_000, -3), on(one, 3, 3, 1, 120_000, -1)},
	"limit_set.lua": {
		on(all, append([]any{1, 5, 5}, set...)...), on(all, append([]any{1, 3, 5}, set...)...), on(all, append([]any{1, 5, 5}, set...)...),
		on(all, append([]any{9, 5, 5}, set...)...), on(one, 1, 1, 1, "fast", 1, 2, 1, 60_000, 1000),
		on(all[:1], 1, 1, 1, "calendar", 3, 0, 1, 2, 9_000_000_000_000), on(all[:1], 1, 1, 1, "calendar", 3, 0, 1, 2, 3),
		on([]string{"{ann}:kept"}, 1, 1, 1, "kept", 3, 1, 1, 0, 1000, 9, 0), on([]string{"{ann}:kept"}, 9, 1, 1, "kept", 3, 1, 1, 0, 1000, 9, 0),
		on(banned, bans...), on(banned, bans...), on(banned, bans...), on(banned, append(bans, 5, 1)...),
		on(leased, estimated("0/a")...), on(leased, estimated("60000/b")...), on(leased, estimated("60000/c")...)},
	"limit_ban.lua": {on(banned[1:], -1, 60_000), on(banned[1:], 60_000, 60_000), on(banned[1:], -1, 60_000), on(banned[1:], 0, 60_000)},
	"limit_settle.lua": {
		on(all[2:3], 0, 1, 2, 3, 0, 0, ""),
		{Keys: []string{all[2], "{ann}:refunded"}, Args: []any{0, 1, 9e15, 1, 1, 60_000, "", "window", 3, 60_000, 1, 60_000, 1000, 3, 1, 60_000, 0}, Prepare: counted},
		on(append(all[:4:4], "{ann}:settled"), append([]any{9, 0, 0, 0, 4, 60_000, ""}, settled...)...),
		on(append(all[:4:4], "{ann}:settled"), append([]any{9, 0, 0, 0, 4, 60_000, ""}, settled...)...),
		on(append(all[:4:4], "{ann}:again"), append([]any{1, 1, 9e15, 1, 4, 60_000, ""}, settled...)...),
		on([]string{"{ann}:kept", "{ann}:kept-settled"}, 9, 0, 0, 0, 1, 60_000, "", "kept", 3, 1, 1, 0, 1000, 9, 1, 3, 0),
		on([]string{"{ann}:kept", "{ann}:kept-again"}, 1, 1, 9e15, 1, 1, 60_000, "", "kept", 3, 1, 1, 0, 1000, 9, 5, 9, 0),
		on([]string{all[2], "{ann}:other"}, 9, 0, 0, 0, 1, 60_000, "", "calendar", 3, 0, 1, 2, 9_000_000_000_000, 5, 1, 0, 0),
		on([]string{all[2], "{ann}:none"}, 9, 0, 0, 0, 1, 60_000, "", "calendar", 3, 0, 1, 2, 3, 5, 1, 0, 0),
		{Keys: []string{leased[0], "{ann}:marker", leased[1]}, Args: []any{2, 1, 9e15, 1, 1, 60_000, "d", "window", 1, 60_000, 1, 60_000, 1000, 5, 1, 60_000, 3}, Prepare: estimate},
		{Keys: []string{leased[0], "{ann}:mark", leased[1]}, Args: []any{2, 1, 9e15, 1, 1, 60_000, "gone", "window", 1, 60_000, 1, 60_000, 1000, 5, 1, 60_000, 3}, Prepare: estimate},
		{Keys: []string{leased[0], "{ann}:back", leased[1]}, Args: []any{0, 1, 9e15, 1, 1, 60_000, "d", "window", 1, 60_000, 1, 60_000, 1000, 5, 1, 60_000, 3}, Prepare: estimate},
		on([]string{all[4], "{ann}:gone"}, 0, 1, 9e15, 1, 1, 60_000, "", "log", 3, 9e15, 1, 120_000, 1000, 3, 1, 1, 0),
	},
	"limit_renew.lua": {{Keys: leased[1:], Args: []any{60_000, "d:1"}, Prepare: estimate}, {Keys: leased[1:], Args: []any{60_000, "gone:1", "d:1"}, Prepare: estimate}},
	"limit_reset.lua": {on(all)},
	"inflight_acquire.lua": {on(one, "a", 2, 30_000_000, 60_000, "", ""), on(one, "b", 2, 30_000_000, 60_000, "lost", "a"),
		on(one, "c", 3, 30_000_000, 60_000, "lost", "gone"), on(one, "d", 3, 30_000_000, 60_000, "", "")},
	"inflight_restore.lua": {on(one, "a", 3, 30_000_000, 60_000, "x", "y"), on(one, "b", 3, 30_000_000, 60_000, "x", "y"),
		flying.then("t", 2, 30_000_000, 60_000, "x", "y"), flying.then("", 3, 30_000_000, 60_000, "t", "x", "y", "z")},
	"inflight_renew.lua":   {on(one, 30_000_000, 60_000, "t"), flying.then(30_000_000, 60_000, "t", "gone")},
	"inflight_release.lua": {on(one, "t"), flying.then("t")},
	"inflight_count.lua":   {on(one), flying.then()},
	"lock_acquire.lua": {on(one, "o", "h", 60_000, 90_000, ""), on(one, "o", "i", 60_000, 90_000, ""),
		on(one, "p", "p", 60_000, 90_000, "PUBLISH"), on(one, "p", "p", 60_000, 90_000, "SPUBLISH")},
	"lock_extend.lua": {on(one, "h", 1, 60_000), acquired.then("h", 1, 60_000), acquired.then("h", 9e15, 90_000)},
	"lock_release.lua": {on(one, "h", 1), acquired.then("h", 9e15), wanted.then("p", 9e15),
		alone.then("p", 9e15, "successor", 60_000, 90_000), wanted.then("p", 9e15, "successor", 60_000, 90_000)},
	"lock_force.lua":   {on(one), acquired.then(), wanted.then()},
	"lock_inspect.lua": {on(one), acquired.then()},
	"once_start.lua":   {on(one, "h", 60_000, 90_000, 9e14, "again", ""), on(one, "i", 60_000, 90_000, 9e14, "again", "PUBLISH"), on(one, "j", 60_000, 90_000, 1, "never", "")},
	"once_end.lua":     {on(one, "h", 1, "completed"), started.then("h", 9e15, "failed"), started.then("h", 9e15, "completed"), started.then("h", 9e15, "undone")},
	"guard_begin.lua":  {on(one, "o", "print", "60000 90000 retry"), on(one, "p", "print", "60000 90000 retry"), on(one, "p", "other", "60000 90000 retry"), dead.then("p", "print", "60000 90000 reject")},
	"guard_renew.lua":  {on(one, "o", 60_000, 90_000), begun.then("o", 60_000, 90_000), begun.then("p", 60_000, 90_000)},
	"guard_complete.lua": {on(one, "o", "done", 90_000, 1764000000123456, 1, "print", "result"), begun.then("o", "gone", 90_000, 1, 1, "print", ""),
		on([]string{"{bob}"}, "o", "done", 90_000, 1764000000123456, 1, "print", "result")},
	"guard_abandon.lua": {on(one, "o", "free", 60_000, 90_000), begun.then("o", "free", 60_000, 90_000), begun.then("o", "doubt", 60_000, 90_000), begun.then("o", "undo", 60_000, 90_000)},
	"guard_resolve.lua": {on(one, "t", "done", 90_000, "result"), dead.then("t", "done", 90_000, "result")},
	"guard_forget.lua":  {on(one), begun.then()},
	"guard_inspect.lua": {on(one), begun.then()},
}

// set has the arguments of a policy of each kind.
var set = []any{
	"bucket", 3, 1, 1, 60_000, 1000, "fast", 3, 2, 1, 60_000, 1000, "window", 3, 60_000, 1, 60_000, 1000,
	"sliding", 3, 60_000, 1, 120_000, 1000, "log", 3, 60_000_000, 1, 120_000, 1000,
}

// settled has a policy of each kind that can be settled, and what a decision took.
var settled = []any{
	"bucket", 3, 1, 1, 60_000, 1000, 5, 2, 2, 0, "fast", 3, 2, 1, 60_000, 1000, 5, 2, 2, 0, "window", 3, 60_000, 1, 60_000, 1000, 5, 2, 60_000, 0,
	"sliding", 3, 60_000, 1, 120_000, 1000, 3, 2, 60_000, 0,
}

// bans has the bans of a window that bans after two denials.
var bans = []any{1, 1, 1, "window", 1, 60_000, 1, 60_000, 1000, 1, "2:60000:60000:90000"}

// estimated takes the one permit of a window, with a lease.
func estimated(lease string) []any {
	return []any{1, 1, 1, "window", 1, 60_000, 1, 60_000, 1000, 1, lease}
}

// estimate prepares a state in which that permit is taken.
func estimate(tb testing.TB, rdb redis.UniversalClient, _ []string) {
	tb.Helper()
	if err := rdb.Eval(tb.Context(), script.FromFS(lua.FS, "limit_set.lua").Source(), leased, estimated("60000/d")...).Err(); err != nil {
		tb.Fatal(err)
	}
}

// counted prepares a window in which two permits are taken.
func counted(tb testing.TB, rdb redis.UniversalClient, keys []string) {
	tb.Helper()
	if err := rdb.Eval(tb.Context(), script.FromFS(lua.FS, "limit_window.lua").Source(), keys, 2, 3, 60_000).Err(); err != nil {
		tb.Fatal(err)
	}
}

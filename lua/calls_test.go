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
	banned = []string{"{ann}:banned", "{ann}:ban"}
	leased = []string{"{ann}:leased", "{ann}:estimates"}
	all    = []string{"{ann}:bucket", "{ann}:fast", "{ann}:window", "{ann}:sliding", "{ann}:log"}

	acquired = made{script.FromFS(lua.FS, "lock_acquire.lua").Source(), []any{"o", "h", 60_000, 90_000, ""}}
	alone    = made{script.FromFS(lua.FS, "lock_acquire.lua").Source(), []any{"p", "p", 60_000, 90_000, ""}}
	wanted   = made{script.FromFS(lua.FS, "lock_acquire.lua").Source(), []any{"p", "p", 60_000, 90_000, "PUBLISH"}}
	inLine   = made{"redis.call('HSET', KEYS[1], 'wake', ARGV[1], unpack(ARGV, 2)) return redis.call('PEXPIRE', KEYS[1], 150000)", []any{
		"PUBLISH a 9000000000000000 b 9000000000000000", "fence", 1, "owner", "h", "ttl", 60_000, "keep", 90_000, "hold:h", ""}}
	promised = made{inLine.source, []any{"SPUBLISH a 1 b 9000000000000000", "fence", 1}}
	started  = made{script.FromFS(lua.FS, "once_start.lua").Source(), []any{"h", 60_000, 90_000, 9e14, "again", ""}}
	begun    = made{script.FromFS(lua.FS, "guard_begin.lua").Source(), []any{"o", "print", "60000 90000 retry"}}
	dead     = made{script.FromFS(lua.FS, "guard_begin.lua").Source(), []any{"o", "print", "0 90000 retry"}}
	flying   = made{script.FromFS(lua.FS, "inflight_acquire.lua").Source(), []any{"t", 2, 30_000_000, 60_000, "", ""}}
)

// calls are typical calls of each script. The calls of one script use the same keys.
var calls = map[string][]scripttest.Call{
	"limit_bucket.lua":  {on(one, 3, 1, 9, 1), on(one, 3, 1, 9, 2), on(one, 3, 1, 9, 9), on(one, 3, 1, 9, 0), on(all[1:2], 3, 2, 9, 1), on(all[1:2], 3, 2, 9, 2)},
	"limit_fast.lua":    {on(one, 3, 2, 9, 1000, 60_000, 1), on(one, 3, 2, 9, 1000, 60_000, 9), on(all[1:2], 3, 1, 9, 1000, 60_000, 1)},
	"limit_kept.lua":    {on(one, 3, 1, 1000, 3, 1), on(one, 3, 1, 1000, 9, 2), on(one, 3, 1, 1000, 3, 9), on(one, 3, 1, 1000, 3, 0), on(all[1:2], 3, 1, 1000, 3, 9)},
	"limit_window.lua":  {on(one, 2, 60_000, 9, 1), on(one, 2, 60_000, 2, 1), on(one, 2, 60_000, 2, 1), on(one, 2, 60_000, 2, 0)},
	"limit_sliding.lua": {on(one, 2, 60_000, 2, 1), on(one, 2, 60_000, 2, 1), on(one, 2, 60_000, 2, 1), on(all[1:2], 9, 60_000, 99, 9), on(all[1:2], 2, 60_000, 99, 1), on(all[1:2], 2, 60_000, 99, 0)},
	"limit_calendar.lua": {
		on(one, 2, 0, 1, 2, 9_000_000_000_000, 9, 1), on(one, 2, 0, 9_000_000_000_000, 9_000_000_000_001, 9_000_000_000_002, 2, 1),
		on(one, 2, 0, 1, 9_000_000_000_000, 9_000_000_000_001, 2, 1), on(one, 2, 0, 1, 2, 9_000_000_000_000, 2, 0), on(one, 2, 0, 1, 2, 3, 2, 1)},
	"limit_log.lua":      {on(one, 3, 60_000_000, 120_000, 1), on(one, 3, 60_000_000, 120_000, 2), on(one, 3, 60_000_000, 120_000, 1), on(one, 3, 1, 120_000, 3), on(one, 3, 1, 120_000, -3)},
	"limit_ban.lua":      {on(banned[1:], -1, 60_000), on(banned[1:], 60_000, 60_000), on(banned[1:], -1, 60_000), on(banned[1:], 0, 60_000)},
	"limit_override.lua": {on(one, -1, ""), on(one, 60_000, "window 9/1h"), on(one, -1, ""), on(one, 0, "")},
	"limit_renew.lua":    {{Keys: leased[1:], Args: []any{60_000, "d:1"}, Prepare: estimate}, {Keys: leased[1:], Args: []any{60_000, "gone:1", "d:1"}, Prepare: estimate}},
	"limit_reset.lua":    {on(all)},
	"inflight_acquire.lua": {on(one, "a", 2, 30_000_000, 60_000, "", ""), on(one, "b", 2, 30_000_000, 60_000, "lost", "a"),
		on(one, "c", 3, 30_000_000, 60_000, "lost", "gone"), on(one, "d", 3, 30_000_000, 60_000, "", "")},
	"inflight_restore.lua": {on(one, "a", 3, 30_000_000, 60_000, "x", "y"), on(one, "b", 3, 30_000_000, 60_000, "x", "y"),
		flying.then("t", 2, 30_000_000, 60_000, "x", "y"), flying.then("", 3, 30_000_000, 60_000, "t", "x", "y", "z")},
	"inflight_renew.lua":   {on(one, 30_000_000, 60_000, "t"), flying.then(30_000_000, 60_000, "t", "gone")},
	"inflight_release.lua": {on(one, "t"), flying.then("t")},
	"inflight_count.lua":   {on(one), flying.then()},
	"lock_acquire.lua": {on(one, "o", "h", 60_000, 90_000, ""), on(one, "o", "i", 60_000, 90_000, ""),
		on(one, "p", "p", 60_000, 90_000, "PUBLISH"), on(one, "p", "p", 60_000, 90_000, "SPUBLISH"),
		inLine.then("p", "p", 60_000, 90_000, "PUBLISH", "c 400 100"), inLine.then("p", "p", 60_000, 90_000, "", "c 400 100"),
		promised.then("p", "p", 60_000, 90_000, "SPUBLISH", "a 400 100"), promised.then("p", "p", 60_000, 90_000, "SPUBLISH", "c 400 9000000000000000")},
	"lock_leave.lua":  {on(one, "a"), inLine.then("a"), inLine.then("c"), promised.then("a"), promised.then("b")},
	"lock_extend.lua": {on(one, "h", 1, 60_000), acquired.then("h", 1, 60_000), acquired.then("h", 9e15, 90_000)},
	"lock_release.lua": {on(one, "h", 1), acquired.then("h", 9e15), wanted.then("p", 9e15), inLine.then("h", 9e15),
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

// estimate prepares a state in which that permit is taken.
func estimate(tb testing.TB, rdb redis.UniversalClient, _ []string) {
	tb.Helper()
	if err := rdb.Eval(tb.Context(), lua.Take(false, true, "window").Text, leased, 1, 1, 0, 1, 4, "window", 1, 60_000, 5, 0, 0, 0, 1, 60_000, 1, 1, "d:1").Err(); err != nil {
		tb.Fatal(err)
	}
}

package lua_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/script/scripttest"
	"github.com/neap-go/neap/lua"
)

var embedded = map[string]string{
	"limit_bucket.lua":      lua.LimitBucket,
	"limit_bucket_fast.lua": lua.LimitBucketFast,
	"limit_window.lua":      lua.LimitWindow,
	"limit_sliding.lua":     lua.LimitSliding,
	"limit_log.lua":         lua.LimitLog,
	"limit_set.lua":         lua.LimitSet,
	"limit_refund.lua":      lua.LimitRefund,
	"limit_reset.lua":       lua.LimitReset,
	"inflight_acquire.lua":  lua.InflightAcquire,
	"inflight_restore.lua":  lua.InflightRestore,
	"inflight_renew.lua":    lua.InflightRenew,
	"inflight_release.lua":  lua.InflightRelease,
	"inflight_count.lua":    lua.InflightCount,
	"lock_acquire.lua":      lua.LockAcquire,
	"lock_extend.lua":       lua.LockExtend,
	"lock_release.lua":      lua.LockRelease,
	"lock_force.lua":        lua.LockForce,
	"lock_inspect.lua":      lua.LockInspect,
	"once_start.lua":        lua.OnceStart,
	"once_end.lua":          lua.OnceEnd,
	"guard_begin.lua":       lua.GuardBegin,
	"guard_renew.lua":       lua.GuardRenew,
	"guard_complete.lua":    lua.GuardComplete,
	"guard_abandon.lua":     lua.GuardAbandon,
	"guard_resolve.lua":     lua.GuardResolve,
	"guard_forget.lua":      lua.GuardForget,
	"guard_inspect.lua":     lua.GuardInspect,
	"stock_open.lua":        lua.StockOpen,
	"stock_reserve.lua":     lua.StockReserve,
	"stock_renew.lua":       lua.StockRenew,
	"stock_cancel.lua":      lua.StockCancel,
	"stock_sweep.lua":       lua.StockSweep,
	"stock_restock.lua":     lua.StockRestock,
	"stock_left.lua":        lua.StockLeft,
	"stock_buyers.lua":      lua.StockBuyers,
	"stock_forget.lua":      lua.StockForget,
}

var makes = regexp.MustCompile(`call\('(?:RPUSH|ZADD|HSET)'`)

func TestEveryFileIsEmbedded(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.lua")
	if err != nil || len(files) != len(embedded) {
		t.Fatalf("%d files, %d of them embedded (%v)", len(files), len(embedded), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil || string(text) != embedded[name] {
			t.Errorf("%s is not what is embedded (%v)", name, err)
		}
	}
}

func TestHeadersTellTheTruth(t *testing.T) {
	t.Parallel()
	for name, source := range embedded {
		scripttest.CheckHeader(t, script.New(name, source))
		for _, fault := range faults(source) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

// faults are what no script of neap's may do, beyond what holds for any.
func faults(source string) (found []string) {
	fault := func(parts ...string) { found = append(found, strings.Join(parts, " ")) }
	body := bodyOf(source)

	if makes.MatchString(body) && !strings.Contains(body, "('PEXPIRE'") {
		fault("a list or a set is made, and no time to live")
	}

	prelude := true
	for line := range strings.Lines(body) {
		trimmed := strings.TrimSpace(line)
		if !strings.HasPrefix(line, "local ") && trimmed != "" {
			prelude = false
		}
		if strings.Contains(line, "ARGV[") && !prelude && !strings.HasPrefix(trimmed, "local ") {
			fault("an argument without a name behind the prelude:", trimmed)
		}
		if strings.Contains(line, "call('SET'") && !strings.Contains(line, "'PX'") {
			fault("a SET without a time to live:", trimmed)
		}
	}
	for _, banned := range []string{"cjson", "cmsgpack", "struct.", "bit.", "table.maxn", "tostring", "loadstring", "#!"} {
		if strings.Contains(body, banned) || strings.HasPrefix(source, "#!") {
			fault(banned, "is not on every server, or not exact")
		}
	}
	return found
}

func bodyOf(source string) (body string) {
	for line := range strings.Lines(source) {
		if body != "" || !strings.HasPrefix(line, "--") {
			body += line
		}
	}
	return body
}

func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	const good = "-- Does it.\n--\n-- KEYS[1]  k\n-- ARGV[1]  v\n-- returns  nothing\n-- effects  SET with PX\n" +
		"local key, v = KEYS[1], ARGV[1]\nredis.call('SET', key, v, 'PX', 1)\n"
	if got := faults(good); len(got) != 0 {
		t.Fatalf("a good script: %q", got)
	}
	for _, c := range []struct{ old, new, want string }{
		{", v, 'PX', 1)", ", v)", "without a time to live"},
		{"'SET', key, v,", "'SET', key, ARGV[1],", "without a name"},
		{"'SET', key, v, 'PX', 1", "'ZADD', key, 1, v", "no time to live"},
		{"key, v,", "key, cjson.encode(v),", "cjson"},
	} {
		got := faults(strings.Replace(good, c.old, c.new, 1))
		if !slices.ContainsFunc(got, func(f string) bool { return strings.Contains(f, c.want) }) {
			t.Errorf("%q for %q: the faults are %q, not %q", c.new, c.old, got, c.want)
		}
	}
}

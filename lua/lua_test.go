package lua_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

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
}

// writes are the commands that change a key; others only read.
var writes = []string{"SET", "INCRBY", "PEXPIRE", "RPUSH", "LPOP", "LTRIM", "LREM", "DEL", "ZADD", "ZREM", "ZREMRANGEBYSCORE",
	"HSET", "HDEL", "PUBLISH", "SPUBLISH"}

var (
	reference = regexp.MustCompile(`\b(?:KEYS|ARGV)\[[^\]]+\]`)
	command   = regexp.MustCompile(`call\('([A-Z]+)'`)
	makes     = regexp.MustCompile(`call\('(?:RPUSH|ZADD|HSET)'`)
	word      = regexp.MustCompile(`\b[A-Z]+\b`)
)

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
		for _, fault := range faults(source) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

// faults are where a script's header and its body disagree, and what no
// script may do.
func faults(source string) (found []string) {
	fault := func(parts ...string) { found = append(found, strings.Join(parts, " ")) }
	header, body := split(source)

	told, used := references(header), references(body)
	for _, ref := range used {
		if !slices.Contains(told, ref) {
			fault(ref, "is used but not in the header")
		}
	}
	for _, ref := range told {
		if all := ref == "KEYS[i]" && strings.Contains(body, "KEYS"); !all && !slices.Contains(used, ref) {
			fault(ref, "is in the header but not used")
		}
	}

	_, effects, ok := strings.Cut(header, "-- effects")
	if !ok || !strings.Contains(header, "-- returns") {
		fault("the header does not say what it returns and what its effects are")
	}
	for _, m := range command.FindAllStringSubmatch(body, -1) {
		if slices.Contains(writes, m[1]) && !strings.Contains(effects, m[1]) && !strings.Contains(effects, "those of each kind") {
			fault(m[1], "is called but not among the effects")
		}
	}
	for _, w := range word.FindAllString(effects, -1) {
		if slices.Contains(writes, w) && !strings.Contains(body, "call('"+w+"'") {
			fault(w, "is among the effects but not called")
		}
	}

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

func split(source string) (header, body string) {
	for line := range strings.Lines(source) {
		if body == "" && strings.HasPrefix(line, "--") {
			header += line
		} else {
			body += line
		}
	}
	return header, body
}

// references are KEYS[…] and ARGV[…] as written, each once.
func references(text string) []string {
	all := reference.FindAllString(text, -1)
	slices.Sort(all)
	return slices.Compact(all)
}

func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	const good = "-- Does it.\n--\n-- KEYS[1]  k\n-- ARGV[1]  v\n-- returns  nothing\n-- effects  SET with PX\n" +
		"local key, v = KEYS[1], ARGV[1]\nredis.call('SET', key, v, 'PX', 1)\n"
	if got := faults(good); len(got) != 0 {
		t.Fatalf("a good script: %q", got)
	}
	for _, c := range []struct{ old, new, want string }{
		{"-- ARGV[1]  v\n", "", "ARGV[1] is used but not in the header"},
		{"-- ARGV[1]  v\n", "-- ARGV[1]  v\n-- ARGV[2]  w\n", "ARGV[2] is in the header but not used"},
		{"-- returns  nothing\n", "", "does not say"},
		{"effects  SET", "effects  DEL", "SET is called but not among"},
		{"effects  SET", "effects  SET, DEL", "DEL is among the effects"},
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

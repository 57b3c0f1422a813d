package lua_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/script/scripttest"
	"github.com/neap-go/neap/lua"
)

// files are the scripts of the package.
var files = func() []string {
	all, err := fs.Glob(lua.FS, "*.lua")
	if err != nil {
		panic(err)
	}
	return all
}()

var makes = regexp.MustCompile(`call\('(?:RPUSH|ZADD|HSET)'`)

func TestEveryFileIsEmbedded(t *testing.T) {
	t.Parallel()
	there, err := filepath.Glob("*.lua")
	if err != nil || len(there) == 0 || !slices.Equal(there, files) {
		t.Errorf("embedded files: got %q, want %q (%v)", files, there, err)
	}
}

func TestHeadersTellTheTruth(t *testing.T) {
	t.Parallel()
	for _, file := range files {
		s := script.FromFS(lua.FS, file)
		scripttest.CheckHeader(t, s)
		for _, fault := range faults(s.Source()) {
			if file == "lock_leave.lua" && fault == noTTL { // it changes a record that is there
				continue
			}
			t.Errorf("%s: got the fault %q, want none", file, fault)
		}
	}
}

const noTTL = "a list or a set is made, and no time to live"

// faults returns what scripts of neap must not do, beyond what holds for every script.
func faults(source string) (found []string) {
	fault := func(parts ...string) { found = append(found, strings.Join(parts, " ")) }
	body := bodyOf(source)

	if makes.MatchString(body) && !strings.Contains(body, "('PEXPIRE'") {
		fault(noTTL)
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
		t.Fatalf("a good script: got the faults %q, want none", got)
	}
	for _, c := range []struct{ old, new, want string }{
		{", v, 'PX', 1)", ", v)", "without a time to live"},
		{"'SET', key, v,", "'SET', key, ARGV[1],", "without a name"},
		{"'SET', key, v, 'PX', 1", "'ZADD', key, 1, v", "no time to live"},
		{"key, v,", "key, cjson.encode(v),", "cjson"},
	} {
		got := faults(strings.Replace(good, c.old, c.new, 1))
		if !slices.ContainsFunc(got, func(f string) bool { return strings.Contains(f, c.want) }) {
			t.Errorf("with %q in place of %q: got the faults %q, want one with %q", c.new, c.old, got, c.want)
		}
	}
}

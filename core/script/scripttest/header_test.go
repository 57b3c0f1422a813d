package scripttest

import (
	"slices"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/script"
)

func TestHeaderFaultsAreFound(t *testing.T) {
	t.Parallel()
	const text = "-- Does it.\n--\n-- KEYS[1]  k\n-- ARGV[1]  v\n-- returns  nothing\n-- effects  SET with PX\n" +
		"local key, v = KEYS[1], ARGV[1]\nlocal call = redis.call\ncall('SET', key, v, 'PX', 1)\n"
	for _, c := range []struct{ old, new, want string }{
		{"x", "x", ""},
		{"-- ARGV[1]  v\n", "", "x.lua:6: ARGV[1] is used but not in the header"},
		{"-- ARGV[1]  v\n", "-- ARGV[1]  v\n-- ARGV[2]  w\n", "x.lua:5: ARGV[2] is in the header but not used"},
		{"ARGV[1]\n", "1 -- ARGV[1]\n", "x.lua:4: ARGV[1] is in the header but not used"},
		{"-- ARGV[1]  v\n", "-- ARGV[i]  v\n", ""},
		{"v, 'PX', 1)", "ARGV [2], 'PX', 1)", "x.lua:9: ARGV[2] is used but not in the header"},
		{"-- KEYS[1]  k\n", "-- KEYS[i]  k\n", ""},
		{"-- returns  nothing\n", "", "x.lua:1: the header does not say"},
		{"-- effects  SET with PX\n", "", "x.lua:1: the header does not say"},
		{"effects  SET", "effects  DEL", "x.lua:9: SET is called but not among the effects"},
		{"effects  SET", "effects  PEXPIRE of it; SET", "x.lua:6: PEXPIRE is among the effects but not called"},
		{"'SET'", `"set"`, ""},
		{"call('SET'", "local name = 'SET'\ncall(name", ""},
		{"-- Does it.\n", "#!lua\n", "x.lua:1: the file does not begin with its header, but with #!"},
		{"v, 'PX', 1)\n", "v, 'PX', 1)\ncall('PUBLISH', key, v)\n", "x.lua:10: PUBLISH is called but not"},
		{"redis.call\n", "_G.redis.call\n", "x.lua:8: scripttest cannot see what goes through _G"},
		{"redis.call\n", "_G['redis'].call\n", "x.lua:8: scripttest cannot see what goes through _G"},
		{"redis.call\n", "getfenv(0).redis.call\n", "x.lua:8: scripttest cannot see what goes through getfenv"},
		{"v, 'PX', 1)\n", "v, 'PX', 1)\nloadstring('redis.call()')()\n", "x.lua:10: scripttest cannot see what goes through loadstring"},
		{"v, 'PX', 1)\n", "'_G', 'PX', 1) -- getfenv\nkey = v.loadstring\n", ""},
		{"v, 'PX', 1)\n", "v, 'PX', 1)\nerror('KEYS[2] is missing')\n", ""},
		{"= KEYS[1], ARGV[1]\n", "= unpack(KEYS), 'KEYS[1]', ARGV[1]\n", ""},
		{"= KEYS[1], ARGV[1]\n", "= KEYS[1], unpack(ARGV)\n", ""},
		{"= KEYS[1], ARGV[1]\n", "= KEYS[1], unpack(KEYS)\n", "x.lua:4: ARGV[1] is in the header but not used"},
		{"= KEYS[1], ARGV[1]\n", "= KEYS[1], #ARGV\n", "x.lua:4: ARGV[1] is in the header but not used"},
	} {
		r := &recorder{TB: t}
		CheckHeader(r, script.New("x.lua", strings.Replace(text, c.old, c.new, 1)))
		if c.want == "" && len(r.said) > 0 || c.want != "" &&
			!slices.ContainsFunc(r.said, func(f string) bool { return strings.HasPrefix(f, c.want) }) {
			t.Errorf("%q for %q: got %q, want %q", c.new, c.old, r.said, c.want)
		}
	}
}

// TestWhatStandsBeforeTheHeaderIsOneFault: the test reports it once, without the faults
// that follow from it, and on no server again.
func TestWhatStandsBeforeTheHeaderIsOneFault(t *testing.T) {
	t.Parallel()
	for before, want := range map[string]string{
		"\ufeff": "a byte order mark", "\n": "an empty line", "\r\n": "an empty line", "#!lua\n": "#!",
	} {
		lines := said(t, script.New("highest.lua", before+good), Call{Keys: []string{"{x}"}, Args: []any{7, 60_000}})
		if len(lines) != 1 || !strings.HasPrefix(lines[0], "highest.lua:1: the file does not begin with its header, but with "+want) {
			t.Errorf("behind %q: got %q, want one fault, that the file begins with %s", before, lines, want)
		}
	}
}

func TestLinesMayEndAsOnWindows(t *testing.T) {
	t.Parallel()
	source := strings.ReplaceAll(strings.Replace(good, "in milliseconds\n", "in milliseconds; or nothing\n", 1), "\n", "\r\n")
	source = strings.Replace(source, "'PX', ttl", "'PX', ttl or 1000", 1)
	if lines := said(t, script.New("highest.lua", source), Call{Keys: []string{"{x}"}, Args: []any{7}, Want: 7}); len(lines) > 0 {
		t.Errorf("lines that end with CR LF: got %q, want no fault", lines)
	}
}

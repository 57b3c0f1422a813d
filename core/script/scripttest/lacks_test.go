package scripttest

import (
	"strings"
	"testing"

	"github.com/neap-go/neap/core/script"
)

// asking returns a script whose body begins in line 5.
func asking(effects, body string) *script.Script {
	return script.New("x.lua", "-- KEYS[1]  k\n-- returns  nothing\n-- effects  "+effects+"\nlocal k = KEYS[1]\n"+body)
}

// TestWhatMiniredisLacksIsNoFault: the scripts use what real servers have.
func TestWhatMiniredisLacksIsNoFault(t *testing.T) {
	t.Parallel()
	const many = "local l = {}\nfor i = 1, 3000 do l[i] = i end\nredis.call('RPUSH', k, unpack(l))\nredis.call('PEXPIRE', k, 1000)"
	for _, c := range []struct{ effects, body, why string }{
		{"none", "redis.call('LCS', k, k)", "x.lua:5: Unknown Redis command, which miniredis lacks: from call 1 on"},
		{"none", "redis.call('OBJECT', 'ENCODING', k)", "x.lua:5: unknown subcommand"},
		{"none", "local x = 1 + 1\ncmsgpack.pack({x})", "x.lua:6: nonexistent global variable 'cmsgpack'"},
		{"none", "struct.pack('>I4', 1)", "x.lua:5: nonexistent global variable 'struct'"},
		{"none", "bit.band(3, 1)", "x.lua:5: nonexistent global variable 'bit'"},
		{"RPUSH, PEXPIRE", many, "x.lua: registry overflow"},
	} {
		r := &recorder{TB: t}
		Run(r, asking(c.effects, c.body), Call{Keys: []string{"{x}"}})
		if len(r.said) > 0 || len(r.logged) != 1 || !strings.HasPrefix(r.logged[0], c.why) {
			t.Errorf("%s: got the faults %q and the log %q, want none and %q", c.body, r.said, r.logged, c.why)
		}
	}
}

// TestWhatNoServerHasIsAFault: the scripts misspell names, which miniredis cannot tell
// from what it lacks.
func TestWhatNoServerHasIsAFault(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"redis.call('GETT', k)":          "x.lua:5: ERR Unknown ", // "Redis command", or Valkey's "command"
		"redis.call('OBJECT', 'AGE', k)": "x.lua:5: ",
		"cmsg.pack({1})":                 "x.lua:5: Script attempted to access nonexistent global variable 'cmsg'",
	} {
		lines := said(t, asking("none", body), Call{Keys: []string{"{x}"}})
		for _, server := range []string{"standalone", "cluster"} {
			if about := on(server, lines); len(about) != 1 || !strings.HasPrefix(about[0], want) {
				t.Errorf("%s on %s: got %q, want one fault, %s", body, server, lines, want)
			}
		}
	}
}

// TestMiniredisIsLeftOut if a script uses what miniredis lacks in a way that Run cannot
// tell from a mistake.
func TestMiniredisIsLeftOut(t *testing.T) {
	t.Parallel()
	s := asking("none", "return redis.acl_check_cmd('GET', k) and 1 or 0")
	call := Call{Keys: []string{"{x}"}, Want: 1}
	if lines := said(t, s, call); len(on("miniredis", lines)) != 1 || len(lines) != 1 {
		t.Errorf("a script that miniredis cannot run: got %q, want one fault, on miniredis alone", lines)
	}
	call.RealOnly = true
	r := &recorder{TB: t}
	if Run(r, s, call, Call{Keys: []string{"{x}"}, Want: 0}); len(on("miniredis", r.said)) != 0 || len(r.said) != 2 {
		t.Errorf("with RealOnly: got %q, want 2 faults and none on miniredis", r.said)
	}
	if len(r.logged) != 1 || !strings.HasPrefix(r.logged[0], "x.lua: from call 1 on it is run on real servers only") {
		t.Errorf("with RealOnly: got the log %q, want from which call on only real servers run it", r.logged)
	}
}

package lua_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/script/scripttest"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

var update = flag.Bool("update", false, "write the lone scripts of limits anew")

// TestLoneScriptsAreJoined: the files are exactly the texts that Redis runs.
func TestLoneScriptsAreJoined(t *testing.T) {
	t.Parallel()
	for _, kind := range lua.Kinds {
		j := lua.Lone(kind)
		if *update {
			if err := os.WriteFile(j.Name, []byte(j.Text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if there, err := os.ReadFile(j.Name); err != nil || string(there) != j.Text {
			t.Errorf("%s: got another text than its parts have (%v), want the same: go test ./lua -update", j.Name, err)
		}
	}
}

// TestWhereALineComesFrom: an error names a file and a line that exist.
func TestWhereALineComesFrom(t *testing.T) {
	t.Parallel()
	for _, j := range []lua.Joined{lua.Take(true, true, lua.Kinds...), lua.Settle(lua.Kinds...)} {
		for i, line := range strings.Split(strings.TrimSuffix(j.Text, "\n"), "\n") {
			file, at, _ := strings.Cut(j.Where(i+1), ":")
			if file == "" && strings.HasPrefix(line, "--") { // between two comments
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("line %d: got the file %q, want one that is there: %v", i+1, file, err)
			}
			var n int
			if _, err := fmt.Sscan(at, &n); err != nil || strings.Split(string(source), "\n")[n-1] != line {
				t.Errorf("line %d: got %s:%s, want a line with %q", i+1, file, at, line)
			}
		}
		for _, line := range []int{0, 9999} {
			if got := j.Where(line); got != fmt.Sprintf("%s:%d", j.Name, line) {
				t.Errorf("line %d: got %q, want the name of the script", line, got)
			}
		}
	}
}

// numbersOf are those of a policy of each kind.
var numbersOf = map[string][]any{
	"bucket": {3, 2, 9}, "fast": {3, 2, 9, 1000, 60_000}, "kept": {3, 1, 1000, 9}, "window": {3, 60_000, 9},
	"calendar": {3, 0, 1, 2, 9_000_000_000_000, 9}, "sliding": {3, 60_000, 3}, "log": {3, 60_000_000, 120_000},
}

// filled are a kind and its numbers as joined scripts take them.
func filled(kind string) []any {
	return slices.Concat([]any{kind}, numbersOf[kind], []any{0, 0, 0, 0, 0})[:7]
}

var commands = regexp.MustCompile(`(?:call|try)\('([A-Z]+)'`)

// headed is a joined script. The header tells of all kinds, so a script of some has another one.
func headed(j lua.Joined, kinds []string) *script.Script {
	if len(kinds) == len(lua.Kinds) && (strings.Contains(j.Name, "ban estimates") || strings.Contains(j.Name, "settle")) {
		return script.New(j.Name, j.Text)
	}
	header := "-- Some kinds.\n--\n-- KEYS[i]  keys\n-- ARGV[i]  arguments\n-- returns  what is told\n-- effects  "
	for _, m := range commands.FindAllStringSubmatch(j.Text, -1) {
		header += m[1] + " "
	}
	return script.New(j.Name, header+"\n"+bodyOf(j.Text))
}

// toldOf is how many numbers are told of each kind.
var toldOf = map[string]int{"bucket": 2, "fast": 2, "kept": 5, "window": 3, "calendar": 4, "sliding": 4, "log": 6}

// takes are calls of a script of some kinds, with a ban, other policies of the subject and a lease of the
// window if there are any.
func takes(bans, leases bool, kinds ...string) []scripttest.Call {
	told := 0
	for _, kind := range kinds {
		told += toldOf[kind]
	}
	if bans {
		told += 6
	}
	keys, args := []string{}, []any{len(kinds), len(kinds), 0, 0, told}
	for i, kind := range kinds {
		keys, args = append(keys, fmt.Sprint("{ann}:", i)), append(args, filled(kind)...)
	}
	if bans {
		keys, args[2] = append(keys, "{ann}:ban", "{ann}:override"), 2
		args = append(args, 1, 2, 60_000, 60_000, 90_000, 1, -1, "", 0, 0)
	}
	if leases {
		keys, args[3] = append(keys, "{ann}:estimates"), 1
		args = append(args, max(slices.Index(kinds, "window"), 0)+1, 60_000)
	}
	var calls []scripttest.Call
	for _, cost := range []any{1, 2, 9, 9, 0, -1} {
		one := slices.Clip(args)
		for range kinds {
			one = append(one, cost)
		}
		one = append(one, 1)
		if leases {
			one = append(one, fmt.Sprint("token:", cost))
		}
		calls = append(calls, on(keys, one...))
	}
	if leases {
		return calls
	}
	runs := slices.Concat(args, calls[0].Args[len(args):])
	runs[len(runs)-1] = 2
	return append(calls, on(slices.Concat(keys, keys), slices.Concat(runs, calls[1].Args[len(args):])...))
}

// TestNoJoinedScriptHasATrap makes calls of the scripts of each kind, of all kinds together, with
// bans and with estimates, on each kind of server: Lua bounds the variables of a script.
func TestNoJoinedScriptHasATrap(t *testing.T) {
	t.Parallel()
	try := func(bans, leases bool, kinds ...string) {
		j := lua.Take(bans, leases, kinds...)
		t.Run(j.Name, func(t *testing.T) {
			t.Parallel()
			scripttest.Run(t, headed(j, kinds), takes(bans, leases, kinds...)...)
		})
	}
	for _, kind := range lua.Kinds {
		try(false, false, kind)
	}
	try(true, false, lua.Kinds...)
	try(true, true, lua.Kinds...)
	try(false, true, "calendar")
}

// settles are calls that settle what a decision of each kind took: to more, to less, again, and
// without the estimate that is there.
func settles(kinds ...string) (calls []scripttest.Call) {
	call := func(marker, estimate string, head ...any) {
		keys := []string{}
		for i := range kinds {
			keys = append(keys, fmt.Sprint("{ann}:", i))
		}
		args := slices.Concat(head, []any{len(kinds), 60_000, estimate})
		keys = append(keys, "{ann}:"+marker)
		if estimate != "" {
			keys = append(keys, "{ann}:estimates")
		}
		for _, kind := range kinds {
			args = append(append(args, filled(kind)...), 1, 2, 2, 0)
			if kind == "window" && estimate != "" {
				args[len(args)-1] = len(keys)
			}
		}
		calls = append(calls, on(keys, args...))
	}
	call("clock", "", 0, 1, 2, 9e15)
	call("more", "", 9, 0, 0, 0)
	call("more", "", 9, 0, 0, 0)
	call("less", "", 1, 1, 9e15, 1)
	call("none", "", 0, 1, 9e15, 1)
	call("estimate", "d:1", 2, 1, 9e15, 1)
	call("gone", "gone:1", 2, 1, 9e15, 1)
	return append(calls, on([]string{"{ann}:0"}, 0, 0, 0, 0, 0, 0, ""))
}

// TestNoSettlementHasATrap is TestNoJoinedScriptHasATrap for what settles.
func TestNoSettlementHasATrap(t *testing.T) {
	t.Parallel()
	for _, kinds := range append(slices.Collect(slices.Chunk(lua.Kinds, 1)), lua.Kinds) {
		j := lua.Settle(kinds...)
		t.Run(j.Name, func(t *testing.T) {
			t.Parallel()
			scripttest.Run(t, headed(j, kinds), settles(kinds...)...)
		})
	}
}

// TestAForeignKeyAnswersForItself: what neap never writes is no state, alone and among runs.
func TestAForeignKeyAnswersForItself(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	for _, kind := range lua.Kinds {
		for _, held := range []string{"-3", "9.5", "text", "", "007", "0x10", "0xFFFFF", "1e2", "1e3", "10e2", "+5", "5 ", strings.Repeat("9", 400) + ":" + strings.Repeat("9", 400), "99999999999999999999", "nan", "1:2", "1:2:0:4:5", "list"} {
			odd, fine := prefix+"{ann}:odd"+kind+held, prefix+"{ann}:fine"+kind+held
			if held == "list" {
				admin.RPush(t.Context(), odd, "text")
				admin.PExpire(t.Context(), odd, 60_000_000_000)
			} else {
				admin.Set(t.Context(), odd, held, 60_000_000_000)
			}
			before := admin.Dump(t.Context(), odd).Val()
			reply, err := admin.Eval(t.Context(), lua.Lone(kind).Text, []string{odd}, append(slices.Clip(numbersOf[kind]), 1)...).Result()
			known := err == nil
			if known != (kind == "fast" && held == "1:2") {
				t.Errorf("%s with %q, alone: got %v, %v, want an error unless it is a record", kind, held, reply, err)
			}
			if after := admin.Dump(t.Context(), odd).Val(); !known && after != before {
				t.Errorf("%s with %q, alone: got the key changed, want it as it was", kind, held)
			}
			args := append([]any{1, 1, 0, 0, toldOf[kind]}, filled(kind)...)
			told, err := admin.Eval(t.Context(), lua.Take(false, false, kind).Text, []string{odd, fine}, append(args, 1, 1, 1, 1)...).Int64Slice()
			if err != nil || (told[0] == -1) == known || told[len(told)/2] != 1 {
				t.Errorf("%s with %q, in a run: got %v, %v, want it known %t as alone, and the other granted", kind, held, told, err, known)
			}
		}
	}
}

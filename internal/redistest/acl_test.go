package redistest

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// byGoRedis are the rights beside those that the scripts use. That each of them
// is needed is tested where it is used, in core/script, core/limit and core/lock.
var byGoRedis = strings.Fields("+evalsha +eval +script|load +asking +cluster|slots +command +ping " +
	"+ssubscribe +subscribe +sunsubscribe +unsubscribe")

var (
	calls   = regexp.MustCompile(`\b(?:p?call|try)\(`)
	called  = regexp.MustCompile(`\b(?:p?call|try)\('([A-Z]+)'`)
	comment = regexp.MustCompile(`--.*`)
)

// TestRulesAreWhatTheScriptsCall is for whoever adds a script.
func TestRulesAreWhatTheScriptsCall(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../lua/*.lua")
	parts, _ := filepath.Glob("../../lua/limits/*.lua")
	if err != nil || len(files) == 0 || len(parts) == 0 {
		t.Fatalf("got the files %q and %q, %v, want the scripts and their parts", files, parts, err)
	}
	var needed []string
	for _, file := range slices.Concat(files, parts) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code := comment.ReplaceAllString(string(text), "")
		commands := called.FindAllStringSubmatch(code, -1)
		if all := calls.FindAllString(code, -1); len(all) != len(commands) {
			t.Errorf("%s: got %d calls, %d of them of a command that is spelled out, want all",
				file, len(all), len(commands))
		}
		for _, m := range commands {
			needed = append(needed, "+"+strings.ToLower(m[1]))
		}
	}
	slices.Sort(needed)
	needed = slices.Compact(needed)
	granted := slices.DeleteFunc(strings.Fields(Rules), func(word string) bool {
		return !strings.HasPrefix(word, "+") || slices.Contains(byGoRedis, word)
	})
	if !slices.Equal(granted, needed) {
		t.Errorf("Rules grant the scripts\n%s\nand they call\n%s\nmake Rules say so, and the two lines of docs/operations.md",
			strings.Join(granted, " "), strings.Join(needed, " "))
	}
}

func TestOperationsHasTheRules(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rules := range []string{Rules, LoadedRules()} {
		line := "```\nACL SETUSER neap reset on >PASSWORD " + rules + "\n```\n"
		if !strings.Contains(string(page), line) {
			t.Errorf("docs/operations.md lacks this:\n%s", line)
		}
	}
	if got := strings.Fields(LoadedRules()); len(got) != len(strings.Fields(Rules))-2 {
		t.Errorf("without EVAL: got %q, want two words fewer than %q", got, Rules)
	}
}

// The library's user, and whoever has no name, may do what the line says, on
// every server and after each of its starts.
func TestTheLibraryIsRestricted(t *testing.T) {
	t.Parallel()
	one, many := NewStandalone(t), NewCluster(t)
	one.Stop(t)
	one.Start(t)
	for name, c := range map[string]struct {
		rdb, admin redis.UniversalClient
	}{
		"standalone": {one.Client(t), one.Admin(t)},
		"nameless":   {one.Client(t, func(o *redis.Options) { o.Username, o.Password = "", "" }), one.Admin(t)},
		"cluster":    {many.Client(t), many.Admin(t)},
	} {
		if err := c.rdb.Set(t.Context(), "neap:a", 1, time.Minute).Err(); err != nil {
			t.Errorf("%s: SET of the library: got %v, want no error", name, err)
		}
		for _, command := range []string{
			"get a", "get neapa", "eval return_1 1 a", "flushall", "scan 0", "config get port", "script flush", "publish a 1",
		} {
			var words []any
			for word := range strings.FieldsSeq(command) {
				words = append(words, word)
			}
			if err := c.rdb.Do(t.Context(), words...).Err(); !redis.HasErrorPrefix(err, "NOPERM") {
				t.Errorf("%s: %s: got %v, want NOPERM", name, command, err)
			}
		}
		if err := c.admin.Set(t.Context(), "a", 1, time.Minute).Err(); err != nil {
			t.Errorf("%s: SET of the admin: got %v, want no error", name, err)
		}
		err := eachMaster(t.Context(), c.admin, func(ctx context.Context, rdb redis.Cmdable) error {
			return rdb.ACLLogReset(ctx).Err()
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestARefusalFailsTheTest(t *testing.T) {
	t.Parallel()
	for by, incr := range map[string]func(rdb, nameless *redis.Client){
		"a command": func(rdb, _ *redis.Client) { _ = rdb.Incr(t.Context(), "neap:a").Err() },
		"a script": func(rdb, _ *redis.Client) {
			_ = rdb.Eval(t.Context(), "return redis.pcall('INCR', KEYS[1])", []string{"neap:a"}).Err()
		},
		"a client without a user": func(_, nameless *redis.Client) { _ = nameless.Incr(t.Context(), "neap:a").Err() },
	} {
		said := fatal(t, func(tb testing.TB) {
			srv := NewStandalone(tb)
			incr(srv.Client(t), srv.Client(t, func(o *redis.Options) { o.Username, o.Password = "", "" }))
		})
		if !strings.Contains(said, "command incr") {
			t.Errorf("a refused INCR by %s: got the failure %q, want one that names the command", by, said)
		}
	}
}

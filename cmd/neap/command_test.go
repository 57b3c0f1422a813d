package main

import (
	"bytes"
	"context"
	"io"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// everyCommand is each command that asks Redis.
var everyCommand = [][]string{
	{"doctor"}, {"top"}, {"guard", "doubt"}, {"peek", "api", "user"}, {"limit", "list"}, {"peek", "api", "user", "--policy", "window 5/1h kept name hourly"}, {"reset", "api", "user", "--policy", "window 5/1h", "-y"},
	{"ban", "api", "user", "--for", "1m", "--policy", "window 5/1h ban 5/1m for 1m"}, {"unban", "api", "user", "--policy", "window 5/1h ban 5/1m for 1m"},
	{"limit", "set", "api", "user", "--policy", "window 5/1h", "--for", "1m"}, {"limit", "get", "api", "user"}, {"limit", "unset", "api", "user"},
	{"lock", "show", "orders", "17"}, {"lock", "force", "orders", "17", "-y"},
	{"guard", "show", "pay", "k"}, {"guard", "resolve", "pay", "k", "--done", "-y"}, {"guard", "forget", "pay", "k", "-y"},
	{"stock", "left", "sale", "phone"}, {"stock", "restock", "sale", "phone", "5", "d1", "-y"}, {"stock", "buyers", "sale", "phone"},
}

// TestRedisIsAway has each command say so, in text and in JSON.
func TestRedisIsAway(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	srv.Pause(t)
	hung := "redis://" + srv.Addr()
	const password = "s3cret/of:mine"
	away := "redis://ann:" + url.QueryEscape(password) + "@127.0.0.1:1"
	for _, args := range everyCommand {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			for _, at := range []string{away, hung, away + "?addr=127.0.0.1:2", away + "?master_name=main&password=" + url.QueryEscape(password)} {
				with := slices.Concat(args, []string{"--url", at, "--timeout", "150ms"})
				got := neap(t, with...)
				got.wants(t, exitAway, "neap: ")
				inJSON := neap(t, append(with, "--json")...)
				inJSON.wants(t, exitAway)
				told := decode[struct {
					Error struct {
						Exit    int
						Message string
					}
				}](t, inJSON.out)
				if told.Error.Exit != exitAway || told.Error.Message == "" {
					t.Errorf("%q: got %+v, want the status and a message", with, told)
				}
				for _, text := range []string{got.out, got.errs, inJSON.out, inJSON.errs} {
					if strings.Contains(text, "s3cret") {
						t.Errorf("%q: got %q, want no password", with, text)
					}
				}
			}
		})
	}
}

// TestInterrupted has a Ctrl-C within a call, and one at a question that has no answer.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	args := []string{"reset", "api", "user", "--policy", "window 5/1h", "--url", srv.AdminURL(), "--prefix", srv.Prefix(t)}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	unanswered, keyboard := io.Pipe()
	defer keyboard.Close()
	terminal := onWrite(interrupt)
	if code := run(ctx, args, system{unanswered, io.Discard, terminal, noEnv}); code != exitLeft {
		t.Errorf("interrupted at the question: got the status %d, want that nothing was changed", code)
	}
	srv.Pause(t)
	ctx, interrupt = context.WithCancel(t.Context())
	defer interrupt()
	time.AfterFunc(50*time.Millisecond, interrupt)
	var errs bytes.Buffer
	code := run(ctx, append(args, "-y", "--timeout", "1h"), system{unanswered, io.Discard, &errs, noEnv})
	said{code, "", errs.String()}.wants(t, exitAway, "neap: interrupted: if you asked for a change, it may have happened")
}

// onWrite is a writer that calls itself at each write.
type onWrite func()

func (f onWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

func noEnv(string) string { return "" }

// TestRedisRefuses has a user without rights, and a user that is not there.
func TestRedisRefuses(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	nothing := redistest.NewUser(t, "-@all", srv)
	for _, args := range everyCommand {
		if args[0] == "doctor" {
			continue // which tells
		}
		neap(t, slices.Concat(args, []string{"--url", "redis://" + nothing + ":" + redistest.Password + "@" + srv.Addr()})...).wants(t, exitRefused, "NOPERM")
		neap(t, slices.Concat(args, []string{"--url", "redis://nobody:wrong@" + srv.Addr()})...).wants(t, exitRefused, "WRONGPASS")
	}
	may := redistest.NewUser(t, redistest.Rules, srv)
	neap(t, "peek", "api", "user", "--url", "redis://"+may+":"+redistest.Password+"@"+srv.Addr()).wants(t, exitRefused, "give the policies by --policy")
	for _, args := range everyCommand[5:] {
		if got := neap(t, slices.Concat(args, []string{"--url", "redis://" + may + ":" + redistest.Password + "@" + srv.Addr()})...); got.code > exitNot {
			t.Errorf("%q: got the status %d, %s, want the documented rights to be enough", args, got.code, got.errs)
		}
	}
}

// TestPasswordsAreNotShown has URLs that cannot be read.
func TestPasswordsAreNotShown(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"redis://ann:s3cr/et@127.0.0.1:1", "redis://ann:12/s3cr@127.0.0.1:1", "redis://ann:s3cr et@127.0.0.1:1", "redis://ann:%s3cr@127.0.0.1:1", "http://ann:s3cr@127.0.0.1:1",
		"redis://ann:s3cr#et@127.0.0.1:1", "redis://ann:s3cr?et@127.0.0.1:1", "redis://ann:s3cr@127.0.0.1:1/x", "redis://ann:s3cr@127.0.0.1:1?what=ever", "redis://ann:s3cr@127.0.0.1:1?addr=x",
		"redis://ann:s3cr@127.0.0.1:1?master_name=x&password=s3cr&db=y",
	} {
		for _, flags := range [][]string{nil, {"--json"}} {
			got := neap(t, append([]string{"top", "--url", address, "--timeout", "100ms"}, flags...)...)
			if got.code != exitUsage && got.code != exitAway || strings.Contains(got.out+got.errs, "s3cr") {
				t.Errorf("%q: got the status %d and %s%s, want the command line wrong and no part of the password", address, got.code, got.out, got.errs)
			}
		}
	}
}

// TestPasswordsInTheWrongPlace has URLs where a command wants something else, so that the error names them.
func TestPasswordsInTheWrongPlace(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"redis://:s3cr3tPW@127.0.0.1:1", "redis://ann:s3cr,s3cr3t@127.0.0.1:1", "redis://s3cr3t@127.0.0.1:1", "redis://ann:s3cr@et@127.0.0.1:1", `redis://ann:s3cr"et@127.0.0.1:1`,
		"redis://ann:s3cr et\n@127.0.0.1:1", "redis://127.0.0.1:1?master_name=main&password=s3cr&addr=127.0.0.1:2",
		`redis://127.0.0.1:1?master_name=main&password=s3cr"et&addr=127.0.0.1:2`,
	} {
		for _, args := range [][]string{
			{"top", address}, {address, "top"}, {"doctor", address, address}, {"top", "--timeout", address}, {"top", "--timeout=" + address}, {"doctor", "--for", address},
			{"peek", address, "user"}, {"ban", "api", "user", "--for", address}, {"peek", "api", "user", "--policy", address}, {"lock", "show", address, "17"},
		} {
			for _, flags := range [][]string{nil, {"--json"}} {
				got := neap(t, slices.Concat(args, flags, []string{"--prefix", address})...)
				if got.code != exitUsage || strings.Contains(got.out+got.errs, "s3cr") {
					t.Errorf("%q: got the status %d and %s%s, want the command line wrong and no part of the password", args, got.code, got.out, got.errs)
				}
			}
		}
	}
}

// TestNoErrorHasAPassword has an error that names one.
func TestNoErrorHasAPassword(t *testing.T) {
	t.Parallel()
	a := &app{}
	a.keepSecret("s3cret of mine", "")
	if got := a.hide("dial redis://ann:s3cret%20of%20mine@host, s3cret+of+mine, s3cret of mine"); strings.Contains(got, "s3cret") || !strings.Contains(got, "redis://ann:***@host") {
		t.Errorf("got %q, want no password", got)
	}
}

// TestWhereTheURLComesFrom has the environment, the flags and a user of its own.
func TestWhereTheURLComesFrom(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	user := redistest.NewUser(t, "~* +@all", srv)
	env := map[string]string{"REDIS_URL": srv.AdminURL()}
	inEnv(t, env, "", "lock", "show", "orders", "17").wants(t, exitNot)
	inEnv(t, env, "", "lock", "show", "orders", "17", "--url", "redis://127.0.0.1:1").wants(t, exitAway)
	neap(t, "lock", "show", "orders", "17").wants(t, exitUsage, "REDIS_URL")
	env = map[string]string{"REDISCLI_AUTH": redistest.Password}
	inEnv(t, env, "", "top", "--url", "redis://"+user+"@"+srv.Addr()).wants(t, exitNot)
	inEnv(t, env, "", "top", "--url", srv.AdminURL(), "--user", user).wants(t, exitNot)
	env["REDISCLI_AUTH"] = "wrong"
	inEnv(t, env, "", "top", "--url", "redis://"+user+"@"+srv.Addr()).wants(t, exitRefused)
	for _, timeout := range []string{"0s", "-1s", "2h", "soon"} {
		neap(t, "top", "--url", srv.AdminURL(), "--timeout", timeout).wants(t, exitUsage, "timeout")
	}
	neap(t, "top", "--url", srv.AdminURL(), "--prefix", "a b").wants(t, exitUsage, "Prefix")
}

func TestCommandLines(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"lock"}, {"peek"}, {"peek", "api"}, {"unknown"}, {"top", "--unknown"}, {"ban", "api", "user"}, {"completion", "tcsh"}, {"stock", "restock", "sale", "phone", "many", "d"}} {
		got := neap(t, args...)
		if got.code != exitUsage {
			t.Errorf("%q: got the status %d, want %d", args, got.code, exitUsage)
		}
	}
	neap(t, "--help").wants(t, exitFound, "Usage: neap", "doctor", "REDIS_URL")
	neap(t, "guard", "resolve", "--help").wants(t, exitFound, "--nothing-done")
}

// TestCompletions runs the shells that this machine has.
func TestCompletions(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"": "doctor top peek reset ban unban script lock limit guard stock completion", "g": "guard", "lock ": "show force run", "guard re": "resolve", "guard d": "doubt", "completion ": "bash zsh fish",
		"reset --y": "--yes", "top --j": "--json", "nothing ": "doctor top peek reset ban unban script lock limit guard stock completion",
	} {
		words := strings.Split(line, " ")
		if got := neap(t, append([]string{"__complete", "--"}, words...)...); got.code != 0 || strings.Join(strings.Fields(got.out), " ") != want {
			t.Errorf("%q: got %q and the status %d, want %q", line, got.out, got.code, want)
		}
	}
	for shell, script := range map[string]string{
		"bash": "neap() { echo \"$@\" >&2; printf 'resolve\\nreset\\n'; }\n%s\nCOMP_WORDS=(neap guard res) COMP_CWORD=2; _neap; echo ${COMPREPLY[@]}",
		"zsh":  "neap() { echo $@ >&2; print -l resolve reset }; compdef() { }; compadd() { print ${(P)2} }\n%s\nwords=(neap guard res) CURRENT=3; _neap",
		"fish": "function neap; echo $argv >&2; echo resolve; echo reset; end\n%s\nset got (complete -C 'neap guard res'); echo $got",
	} {
		if _, err := exec.LookPath(shell); err != nil {
			continue
		}
		printed := neap(t, "completion", shell)
		printed.wants(t, exitFound)
		var asked strings.Builder
		cmd := exec.CommandContext(t.Context(), shell, "-c", strings.Replace(script, "%s", printed.out, 1))
		cmd.Stderr = &asked
		got, err := cmd.Output()
		answer := strings.Fields(string(got))
		slices.Sort(answer)
		if err != nil || !slices.Equal(answer, []string{"reset", "resolve"}) || !strings.Contains(asked.String(), "__complete -- guard res") {
			t.Errorf("%s: got %q, %v, and asked %q, want reset and resolve of the words guard res", shell, got, err, asked.String())
		}
	}
}

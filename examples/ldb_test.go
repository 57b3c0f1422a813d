package examples_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// TestTheDebuggersSessionIsTrue types what docs/own-scripts.md types into the
// debugger, and finds each line that the page shows, in its order.
func TestTheDebuggersSessionIsTrue(t *testing.T) {
	t.Parallel()
	session := regexp.MustCompile("(?s)```console\n\\$ redis-cli (--ldb .*?)\n(.*?)```").FindStringSubmatch(read(t, "../docs/own-scripts.md"))
	if session == nil {
		t.Fatal("the page has no session, want one")
	}
	srv := redistest.NewStandalone(t)
	var typed strings.Builder
	var want []string
	for line := range strings.Lines(session[2]) {
		if command, ok := strings.CutPrefix(line, "lua debugger> "); ok {
			typed.WriteString(command)
		} else {
			want = append(want, line)
		}
	}
	out := debug(t, srv, typed.String(), strings.Fields(session[1])...)
	if len(want) < 8 {
		t.Fatalf("the page has %d lines of the debugger, want 8 at least", len(want))
	}
	rest := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(out, "")
	for _, line := range want {
		_, behind, found := strings.Cut(rest, line)
		if !found {
			t.Errorf("the debugger did not say %q, want it in its place in\n%s", line, out)
			continue
		}
		rest = behind
	}
	if n := srv.Admin(t).Exists(t.Context(), "orders").Val(); n != 0 {
		t.Error("what the script wrote stayed, want it gone")
	}
}

// TestOnlyAbortStopsTheScriptInSyncMode leaves the debugger behind the first line,
// in each way that the page names, and looks whether the script wrote its last.
func TestOnlyAbortStopsTheScriptInSyncMode(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	session := strings.Fields("--ldb-sync-mode --eval examples/sequence/next.lua orders , 20261121 0 9000000000 1 999999 60000")
	for typed, want := range map[string]int64{"s\na\n": 0, "s\nrestart\na\n": 1, "s\nquit\n": 1, "s\n": 1} {
		srv.Admin(t).Del(t.Context(), "orders")
		out := debug(t, srv, typed, session...)
		wrote := func() bool { return srv.Admin(t).Exists(t.Context(), "orders").Val() == want }
		if want == 0 && !wrote() {
			t.Errorf("behind %q the script ran on, want it to stop:\n%s", typed, out)
		}
		redistest.Await(t, 10*time.Second, fmt.Sprintf("the end of the script behind %q", typed), wrote)
	}
}

// debug has redis-cli do what is typed, in the directory of the repository.
func debug(t *testing.T, srv *redistest.Server, typed string, args ...string) (out string) {
	t.Helper()
	cli, err := exec.LookPath("redis-cli")
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal("redis-cli is not installed")
	} else if err != nil {
		t.Skip("redis-cli is not installed: install it with redis-server")
	}
	admin := srv.Admin(t).Options()
	_, port, _ := strings.Cut(srv.Addr(), ":")
	args = append([]string{"-p", port, "--user", admin.Username, "--pass", admin.Password, "--no-auth-warning"}, args...)
	cmd := exec.CommandContext(t.Context(), cli, args...)
	cmd.Dir = ".."
	cmd.Stdin = strings.NewReader(typed)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli ended with %v, want no error:\n%s", err, text)
	}
	return string(text)
}

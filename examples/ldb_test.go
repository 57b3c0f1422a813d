package examples_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/neap-go/neap/internal/redistest"
)

// TestTheDebuggersSessionIsTrue types what docs/own-scripts.md types into the
// debugger, and finds each line that the page shows, in its order.
func TestTheDebuggersSessionIsTrue(t *testing.T) {
	t.Parallel()
	cli, err := exec.LookPath("redis-cli")
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal("redis-cli is not installed")
	} else if err != nil {
		t.Skip("redis-cli is not installed: install it with redis-server")
	}
	text, err := os.ReadFile("../docs/own-scripts.md")
	if err != nil {
		t.Fatal(err)
	}
	session := regexp.MustCompile("(?s)```console\n\\$ redis-cli (--ldb .*?)\n(.*?)```").FindStringSubmatch(string(text))
	if session == nil {
		t.Fatal("the page has no session")
	}
	srv := redistest.NewStandalone(t)
	admin := srv.Admin(t).Options()
	_, port, _ := strings.Cut(srv.Addr(), ":")
	args := append([]string{"-p", port, "--user", admin.Username, "--pass", admin.Password, "--no-auth-warning"}, strings.Fields(session[1])...)
	cmd := exec.CommandContext(t.Context(), cli, args...)
	cmd.Dir = ".."
	var typed strings.Builder
	var want []string
	for line := range strings.Lines(session[2]) {
		if command, ok := strings.CutPrefix(line, "lua debugger> "); ok {
			typed.WriteString(command)
		} else {
			want = append(want, line)
		}
	}
	cmd.Stdin = strings.NewReader(typed.String())
	out, err := cmd.CombinedOutput()
	if err != nil || len(want) < 8 {
		t.Fatalf("%d lines, %v\n%s", len(want), err, out)
	}
	rest := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(string(out), "")
	for _, line := range want {
		_, behind, found := strings.Cut(rest, line)
		if !found {
			t.Errorf("nothing of %q in its place in\n%s", line, out)
			continue
		}
		rest = behind
	}
	if n := srv.Admin(t).Exists(t.Context(), "orders").Val(); n != 0 {
		t.Error("what the script wrote stayed")
	}
}

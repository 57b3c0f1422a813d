package hertzlimit_test

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// ofFirst is the variable of the environment in which TestFirst runs.
const ofFirst = "NEAP_HERTZLIMIT_FIRST"

// alone skips a test whose driver is not whole, unless TestFirstResults runs it.
func alone(t *testing.T) {
	t.Helper()
	if os.Getenv(ofFirst) == "" {
		t.Skip("this driver is not whole")
	}
}

// TestFirstResults: a driver of 60 lines has results, good ones for what it can and bad
// ones, which say why, for what it cannot.
func TestFirstResults(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("first_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("\n")); n > 60 {
		t.Errorf("the first driver has %d lines, want 60 at most", n)
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(own, "-test.v", "-test.short", "-test.run=^TestFirst$/^(Pass|Request|Trailer|Exclusive)$/^(ZeroRunsTheHandler|FieldsAddOrReplace|SetCookieLines|UnknownPath|Target|Header|MethodAndPeer|Query|Native|Spoof|OneAtATime|Outer)$")
	cmd.Env = append(os.Environ(), ofFirst+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("the driver passed, want it to fail where it is not whole")
	}
	for _, name := range []string{"Pass/ZeroRunsTheHandler", "Pass/FieldsAddOrReplace", "Pass/SetCookieLines", "Request/Target", "Request/Header", "Request/MethodAndPeer"} {
		if !strings.Contains(string(out), "--- PASS: TestFirst/"+name+" ") {
			t.Errorf("%s has not passed, want it to", name)
		}
	}
	for name, why := range map[string]string{
		"Request/Query":        `Exchange\.Query panicked, or is not written yet`,
		"Request/Native":       `the Driver has no Native`,
		"Exclusive/OneAtATime": `the Driver has no Redis`,
	} {
		if !strings.Contains(string(out), "--- FAIL: TestFirst/"+name+" ") || !regexp.MustCompile(why).Match(out) {
			t.Errorf("%s has not failed with %q, want it to", name, why)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}

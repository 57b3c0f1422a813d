package examples_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCIRunsWhatTheDocsSay: .ci/run makes two targets, and each page that says
// what CI runs names both.
func TestCIRunsWhatTheDocsSay(t *testing.T) {
	t.Parallel()
	var runs []string
	for _, m := range regexp.MustCompile(`(?m)^make (.*)$`).FindAllStringSubmatch(read(t, "../.ci/run"), -1) {
		runs = append(runs, m[1])
	}
	if !slices.Equal(runs, []string{"check", "test"}) {
		t.Errorf(".ci/run makes %q, want check and test", runs)
	}
	for _, name := range []string{"../README.md", "../README.zh-CN.md", "../CONTRIBUTING.md"} {
		if !regexp.MustCompile("CI\\s\\S*\\s?`make check`.{0,100}`make test`").MatchString(strings.ReplaceAll(read(t, name), "\n", " ")) {
			t.Errorf("%s does not say that CI runs `make check` and `make test`", name)
		}
	}
}

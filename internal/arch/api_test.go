package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheAPICheckWantsBreakingChangesSaid runs scripts/api-check.sh in a repository of
// its own, where a shell script in the place of apidiff says what has changed.
func TestTheAPICheckWantsBreakingChangesSaid(t *testing.T) {
	t.Parallel()
	const (
		old     = "\n## [0.1.0] - 2026-01-02\n\n### Removed\n\n- Breaking: `limit.Old`, `core/gone`, `limit.Limiter.Take`.\n"
		removed = "- ./core/limit.Old: removed\n"
	)
	for _, c := range []struct {
		name, changelog, changes string
		tag                      string
		untouched, passes        bool
		says                     string
	}{
		{name: "no tag", changelog: "## [Unreleased]\n", changes: removed, passes: true, says: "no version is tagged"},
		{name: "nothing has changed", changelog: "## [Unreleased]\n" + old, changes: removed, tag: "v0.1.0", untouched: true, passes: true, says: "as it was at v0.1.0"},
		{name: "nothing breaks", changelog: "## [Unreleased]\n" + old, tag: "v0.1.0", passes: true, says: "breaks nothing"},
		{name: "unsaid", changelog: "## [Unreleased]\n" + old, changes: removed, tag: "v0.1.0", says: "- ./core/limit.Old: removed"},
		{name: "said", changelog: "## [Unreleased]\n\n### Removed\n\n- **Breaking:** as announced,\n  `limit.Old` is gone.\n" + old, changes: removed, tag: "v0.1.0", passes: true},
		{name: "said in the section of the next version", changelog: "## [Unreleased]\n\n## [0.2.0] - 2026-02-03\n\n### Changed\n\n- Breaking: `limit.Old`.\n" + old, changes: removed, tag: "v0.1.0", passes: true},
		{name: "said from v1 on", changelog: "## [Unreleased]\n\n### Removed\n\n- Breaking: `limit.Old`.\n", changes: removed, tag: "v1.0.0", says: "- ./core/limit.Old: removed"},
		{name: "named in another entry", changelog: "## [Unreleased]\n\n### Changed\n\n- Breaking: `limit.New`.\n- `limit.Old` is quicker.\n" + old, changes: removed, tag: "v0.1.0", says: "limit.Old"},
		{name: "named under Added", changelog: "## [Unreleased]\n\n### Added\n\n- Not breaking: `limit.Old`.\n" + old, changes: removed, tag: "v0.1.0", says: "limit.Old"},
		{name: "named in part", changelog: "## [Unreleased]\n\n### Changed\n\n- Breaking: `ginlimit.Old`, `limit.Older`.\n" + old, changes: removed, tag: "v0.1.0", says: "limit.Old"},
		{name: "a method by its type", changelog: "## [Unreleased]\n\n### Changed\n\n- Breaking: `limit.Limiter`.\n" + old, changes: "- ./core/limit.(*Limiter).Take: changed from func() to func(int)\n", tag: "v0.1.0", passes: true},
		{name: "a method by another", changelog: "## [Unreleased]\n\n### Changed\n\n- Breaking: `limit.Limiter.Peek`.\n" + old, changes: "- ./core/limit.(*Limiter).Take: changed from func() to func(int)\n", tag: "v0.1.0", says: "Take"},
		{name: "a package", changelog: "## [Unreleased]\n\n### Removed\n\n- Breaking: core/gone.\n" + old, changes: "- package github.com/neap-go/neap/core/gone: removed\n", tag: "v0.1.0", passes: true},
		{name: "an example", changelog: "## [Unreleased]\n" + old, changes: "- ./examples/shop.Open: removed\n", tag: "v0.1.0", passes: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := checkout(t, c.changelog, c.changes)
			if c.tag != "" {
				git(t, dir, "tag", c.tag)
			}
			if !c.untouched {
				write(t, filepath.Join(dir, "neap.go"), "package neap\n\nconst changed = true\n", 0o600)
			}
			out, err := exec.Command("sh", filepath.Join(dir, "scripts/api-check.sh")).CombinedOutput()
			if (err == nil) != c.passes || !strings.Contains(string(out), c.says) {
				t.Errorf("got %v and\n%s\nwant it to pass: %t, and to say %q", err, out, c.passes, c.says)
			}
		})
	}
}

// TestTheAPICheckFailsIfItCannotCompare: an apidiff that fails has not said that nothing breaks.
func TestTheAPICheckFailsIfItCannotCompare(t *testing.T) {
	t.Parallel()
	dir := checkout(t, "## [Unreleased]\n", "")
	git(t, dir, "tag", "v0.1.0")
	write(t, filepath.Join(dir, "neap.go"), "package neap\n\nconst changed = true\n", 0o600)
	if err := os.Remove(filepath.Join(dir, "changes")); err != nil { // the apidiff of checkout prints it
		t.Fatal(err)
	}
	if out, err := exec.Command("sh", filepath.Join(dir, "scripts/api-check.sh")).CombinedOutput(); err == nil {
		t.Errorf("got no error and\n%s\nwant it to fail with apidiff", out)
	}
}

// TestTheAPICheckNeedsTags: a clone that has lost the tags of what CHANGELOG.md has
// released must not pass for one before the first release.
func TestTheAPICheckNeedsTags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		changelog string
		passes    bool
	}{
		{"## [Unreleased]\n\n## [0.1.0] - 2026-01-02\n", false},
		{"## [Unreleased]\n", true},
	} {
		from, dir := checkout(t, c.changelog, ""), filepath.Join(t.TempDir(), "clone")
		git(t, from, "commit", "-q", "--allow-empty", "-m", "second")
		git(t, from, "clone", "-q", "--depth", "1", "file://"+from, dir)
		out, err := exec.Command("sh", filepath.Join(dir, "scripts/api-check.sh")).CombinedOutput()
		if (err == nil) != c.passes {
			t.Errorf("a shallow clone with the changelog %q: got %v and %s, want it to pass: %t", c.changelog, err, out, c.passes)
		}
	}
}

// checkout is a repository of one module with api-check.sh, and an apidiff that tells
// these changes.
func checkout(t *testing.T, changelog, changes string) (dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(filepath.Join(root, "scripts/api-check.sh"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^apidiff_version=(v\S+)$`).FindSubmatch(script)
	if version == nil {
		t.Fatal("scripts/api-check.sh has no line apidiff_version=…")
	}
	write(t, filepath.Join(dir, "scripts/api-check.sh"), string(script), 0o600)
	write(t, filepath.Join(dir, "Makefile"), "LIBRARY := .\n", 0o600)
	write(t, filepath.Join(dir, "CHANGELOG.md"), changelog, 0o600)
	write(t, filepath.Join(dir, "neap.go"), "package neap\n", 0o600)
	git(t, dir, "init", "-q")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "first")
	write(t, filepath.Join(dir, "changes"), changes, 0o600)
	write(t, filepath.Join(dir, ".bin/apidiff-"+string(version[1])), `#!/bin/sh
case $2 in
-w) : >"$3" ;;
-incompatible) cat "$(dirname "$0")/../changes" ;;
esac
`, 0o700)
	return dir
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// git runs git without what the machine has configured for its user.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

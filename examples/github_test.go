package examples_test

import (
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWorkflowsCallWhatThereIs: the workflows run .ci/run and a target of the Makefile,
// on the Go version that go.mod asks for and on the newest; each action is pinned to a
// commit, and no job may write but that of a release.
func TestWorkflowsCallWhatThereIs(t *testing.T) {
	t.Parallel()
	workflows, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(workflows) < 2 {
		t.Fatalf("got the workflows %q and %v, want two at least", workflows, err)
	}
	makefile := read(t, "../Makefile")
	for _, name := range workflows {
		text := read(t, name)
		if !strings.Contains(text, "\npermissions:\n  contents: read\n") || strings.Contains(text, "write") && filepath.Base(name) != "release.yml" {
			t.Errorf("%s has other permissions, want contents: read alone", name)
		}
		for _, m := range regexp.MustCompile(`uses: (.*)`).FindAllStringSubmatch(text, -1) {
			if !regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`).MatchString(m[1]) {
				t.Errorf("%s uses %s, want a commit, and its version as the comment", name, m[1])
			}
		}
		for _, m := range regexp.MustCompile(`run: (scripts/\S+)`).FindAllStringSubmatch(text, -1) {
			read(t, "../"+m[1])
		}
		for _, m := range regexp.MustCompile(`run: make (\S+)`).FindAllStringSubmatch(text, -1) {
			if !strings.Contains(makefile, "\n"+m[1]+": ") {
				t.Errorf("%s makes %s, want a target of the Makefile", name, m[1])
			}
		}
	}
	ci, nightly := read(t, "../.github/workflows/ci.yml"), read(t, "../.github/workflows/nightly.yml")
	if !strings.Contains(ci, "- run: .ci/run\n") || !strings.Contains(nightly, "- run: make nightly\n") {
		t.Error("want ci.yml to run .ci/run, and nightly.yml to run make nightly")
	}
	if needs := goVersion(t); !strings.Contains(ci, "go: ['"+needs+".x', 'stable']") {
		t.Errorf("ci.yml does not run on Go %s and stable, want both", needs)
	}
}

// TestDependabotLooksAtEachModule: a module that dependabot.yml does not name gets no
// updates, and one that is gone makes all updates fail.
func TestDependabotLooksAtEachModule(t *testing.T) {
	t.Parallel()
	var want []string
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != ".." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if d.Name() == "go.mod" {
			want = append(want, path.Join("/", strings.TrimPrefix(filepath.ToSlash(filepath.Dir(p)), "..")))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^      - (/\S*)$`).FindAllStringSubmatch(read(t, "../.github/dependabot.yml"), -1) {
		got = append(got, m[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("dependabot.yml looks at %q, want %q", got, want)
	}
}

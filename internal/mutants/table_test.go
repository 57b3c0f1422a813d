package main

import (
	"os"
	"path/filepath"
	"testing"
)

// fewest is how many bugs a package must have.
const fewest = 6

// TestTablesApply notices that code has changed so that a table does not fit it any more.
// Otherwise only the next nightly run would notice.
func TestTablesApply(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	for _, of := range targets {
		bugs := of.mutants()[1:]
		if len(bugs) < fewest {
			t.Errorf("%s: got %d bugs, want %d at least", of.name, len(bugs), fewest)
		}
		known := map[string]bool{}
		for _, m := range bugs {
			known[m.why], known[m.file] = true, true
			if _, err := m.source(root); err != nil {
				t.Errorf("%s: %s: %v", of.name, m.why, err)
			}
		}
		for what := range of.instead {
			if !known[what] {
				t.Errorf("%s: got tests for %q, which is neither a bug nor a file with bugs", of.name, what)
			}
		}
	}
}

// TestNightsMakeEachBugOnce holds that seven nights in a row leave no bug out.
func TestNightsMakeEachBugOnce(t *testing.T) {
	t.Parallel()
	of := targets[0]
	made := map[string]int{}
	for night := 365; night < 365+nights; night++ {
		some := of.tonight(night)
		if some[0].file != "" {
			t.Errorf("night %d begins with the bug %q, want the package without a bug", night, some[0].why)
		}
		for _, m := range some[1:] {
			made[m.name]++
		}
	}
	for _, m := range of.tonight(-1)[1:] {
		if made[m.name] != 1 {
			t.Errorf("%s: made in %d nights, want 1", m.why, made[m.name])
		}
	}
}

func TestSourceIsRefused(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("one, two, two"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]mutant{
		"absent":    {file: "a.go", bug: bug{old: "three", new: "four"}},
		"twice":     {file: "a.go", bug: bug{old: "two", new: "three"}},
		"unchanged": {file: "a.go", bug: bug{old: "one", new: "one"}},
		"no file":   {file: "b.go", bug: bug{old: "one", new: "two"}},
	} {
		if _, err := m.source(root); err == nil {
			t.Errorf("%s: got a source, want an error", name)
		}
	}
	const want = "1, two, two"
	got, err := mutant{file: "a.go", bug: bug{old: "one", new: "1"}}.source(root)
	if string(got) != want || err != nil {
		t.Errorf("got %q and the error %v, want %q", got, err, want)
	}
}

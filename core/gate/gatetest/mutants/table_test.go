package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestTablesApply: a table that the code has moved away from is noticed with
// the other tests, not in the next nightly run.
func TestTablesApply(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..", "..")
	for _, a := range adapters {
		if len(a.bugs) < fewest {
			t.Errorf("%s has %d bugs, want %d at least", a.name, len(a.bugs), fewest)
		}
		for _, b := range a.bugs {
			if _, err := b.source(root); err != nil {
				t.Errorf("%s: %s: %v", a.name, b.why, err)
			}
		}
	}
}

func TestSourceIsRefused(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("one, two, two"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]bug{
		"absent":    {file: "a.go", old: "three", new: "four"},
		"twice":     {file: "a.go", old: "two", new: "three"},
		"unchanged": {file: "a.go", old: "one", new: "one"},
		"no file":   {file: "b.go", old: "one", new: "two"},
	} {
		if _, err := b.source(root); err == nil {
			t.Errorf("%s: the mutant was made", name)
		}
	}
	got, err := bug{file: "a.go", old: "one", new: "1"}.source(root)
	if string(got) != "1, two, two" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// adapter is a package whose tests run the contract, and the sources that are changed in
// order to see these tests fail.
type adapter struct {
	name    string // its directory, too
	sources []source
}

// source is a file, by its path in the module, and the bugs to put into it.
type source struct {
	file string
	bugs []bug
}

// bug is a change of one line: old, which occurs exactly once in the file, becomes new.
// why says what would go wrong.
type bug struct{ why, old, new string }

var adapters = []adapter{
	{"nethttp", nethttpBugs},
	{"ginlimit", ginBugs},
	{"echolimit", echoBugs},
	{"fiberlimit", fiberBugs},
	{"echo5limit", echo5Bugs},
	{"fiber3limit", fiber3Bugs},
}

// mutant is an adapter with one bug. If file is empty, it has none.
type mutant struct {
	adapter, name, file string
	bug
}

// mutants are the adapter without a bug, and then with each bug.
func (a adapter) mutants() []mutant {
	all := []mutant{{adapter: a.name, name: a.name + "-control", bug: bug{why: "without a bug"}}}
	for _, s := range a.sources {
		for _, b := range s.bugs {
			all = append(all, mutant{a.name, fmt.Sprintf("%s-%d", a.name, len(all)), s.file, b})
		}
	}
	return all
}

// source is the changed file, for the module at root.
func (m mutant) source(root string) ([]byte, error) {
	src, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(src, []byte(m.old)); n != 1 || m.old == m.new {
		return nil, fmt.Errorf("%q occurs %d times in %s, want once, and changed", m.old, n, m.file)
	}
	return bytes.Replace(src, []byte(m.old), []byte(m.new), 1), nil
}

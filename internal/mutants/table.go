package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// target is a package, and the sources that are changed in order to see its tests fail.
type target struct {
	name    string // its directory, too
	sources []source
	tests   string            // those that must catch each bug; empty for all
	instead map[string]string // other tests for some bugs; the key is the bug's why, or its file
	busy    bool              // they need a processor all the time, and wait for nothing
}

// source is a file, by its path in the module, and the bugs to put into it.
type source struct {
	file string
	bugs []bug
}

// bug is a change of one place: old, which occurs exactly once in the file, becomes new.
// why says what would go wrong.
type bug struct{ why, old, new string }

// The tests of the adapters run the contract.
var targets = []target{
	{name: "nethttp", sources: nethttpBugs},
	{name: "ginlimit", sources: ginBugs},
	{name: "echolimit", sources: echoBugs},
	{name: "fiberlimit", sources: fiberBugs},
	{name: "echo5limit", sources: echo5Bugs},
	{name: "fiber3limit", sources: fiber3Bugs},
	{name: "grpclimit", sources: grpcBugs},
	{name: "hertzlimit", sources: hertzBugs},
	{name: "core/outgoing", sources: outgoingBugs},
	{name: "core/lock", sources: lockBugs, tests: "^(TestAcquireAll|TestALoss|TestAPanicReleases|TestReleaseJoins|TestTheLossOfOneLock)"},
	{name: "core/limit/internal/kind", sources: kindBugs, busy: true},
	{name: "core/limit/internal/line", sources: lineBugs, busy: true},
	{name: "core/limit/internal/wire", sources: wireBugs, busy: true},
	{name: "core/limit", sources: slices.Concat(limitScripts, limitBugs), tests: "^TestTable$", instead: limitTests, busy: true},
}

// mutant is a package with one bug. If file is empty, it has none.
type mutant struct {
	target, tests, name, file string
	busy, few                 bool // few: it has tests of its own, which are fewer
	bug
}

// mutants are the package without a bug, and then with each bug.
func (t *target) mutants() []mutant {
	name := strings.ReplaceAll(t.name, "/", "-")
	every := []string{t.tests}
	for _, of := range t.instead {
		every = append(every, of)
	}
	slices.Sort(every)
	control := strings.Trim(strings.Join(slices.Compact(every), "|"), "|")
	all := []mutant{{target: t.name, tests: control, busy: t.busy, name: name + "-control", bug: bug{why: "without a bug"}}}
	for _, s := range t.sources {
		for _, b := range s.bugs {
			tests := cmp.Or(t.instead[b.why], t.instead[s.file], t.tests)
			all = append(all, mutant{t.name, tests, fmt.Sprintf("%s-%d", name, len(all)), s.file, t.busy, tests != t.tests, b})
		}
	}
	return all
}

// nights is in how many nights all bugs are made.
const nights = 7

// tonight are the package without a bug, and those bugs that are made in a night, which is
// the day of the year. They are all if night is negative.
func (t *target) tonight(night int) []mutant {
	all := t.mutants()
	if night < 0 {
		return all
	}
	some := all[:1:1]
	for i, m := range all[1:] {
		if i%nights == night%nights {
			some = append(some, m)
		}
	}
	return some
}

// isScript reports whether the bug is in a Lua script.
func (m mutant) isScript() bool { return strings.HasSuffix(m.file, ".lua") }

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

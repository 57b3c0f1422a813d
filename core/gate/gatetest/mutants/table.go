package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// adapter is a package whose tests run the contract, and its mutants.
type adapter struct {
	name string // its directory, too
	bugs []bug
}

// bug is a change of one line in file, a path in the module: old, which occurs
// exactly once there, becomes new. why says what would go wrong.
type bug struct{ file, old, new, why string }

var adapters = []adapter{
	{"nethttp", nethttpBugs},
	{"ginlimit", ginBugs},
	{"echolimit", echoBugs},
	{"fiberlimit", fiberBugs},
}

// fewest is how many bugs an adapter must have.
const fewest = 6

// source is the changed file, for the module at root.
func (b bug) source(root string) ([]byte, error) {
	src, err := os.ReadFile(filepath.Join(root, b.file))
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(src, []byte(b.old)); n != 1 || b.old == b.new {
		return nil, fmt.Errorf("%q occurs %d times in %s, want once, and changed", b.old, n, b.file)
	}
	return bytes.Replace(src, []byte(b.old), []byte(b.new), 1), nil
}

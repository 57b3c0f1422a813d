package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// limit is how long a package's tests may take. With a bug they may wait for something
// that never happens.
const limit = 90 * time.Second

// tries is how often the tests of one binary may run until they give the expected result.
// While other binaries are built, a test sometimes sees a bug too late, or ends without a
// result.
const tries = 3

// runner makes mutants and runs their tests.
type runner struct {
	root, tmp string
	verbose   bool
	builds    chan struct{} // bounds how many builds run at a time

	mu     sync.Mutex
	caught int
	faults []string
	read   map[string]func() (binary string, err error) // binaries of tests that read the scripts from a directory, by their package
}

// test expects the tests of a mutant to fail, and those of the package without a
// bug to pass.
func (r *runner) test(ctx context.Context, m mutant) {
	binary, remove, err := r.prepare(ctx, m)
	if err != nil {
		r.fault(fmt.Sprintf("%s: %s: %v", m.target, m.why, err))
		return
	}
	defer remove()
	for try := 1; ; try++ {
		output, passed := r.execute(ctx, m, binary)
		fault := m.fault(output, passed)
		switch {
		case ctx.Err() != nil:
			r.fault(fmt.Sprintf("%s: %v", m.target, ctx.Err()))
			return
		case fault == "" && m.file == "":
			return
		case fault == "":
			r.caughtBy(m, output)
			return
		case try == tries || m.busy:
			r.fault(fault)
			return
		}
		fmt.Printf("%s\ntrying again\n", fault)
	}
}

// fault says what is wrong with the result of a mutant's tests. It is empty if nothing
// is.
func (m mutant) fault(output string, passed bool) string {
	switch {
	case m.file == "" && !passed:
		return fmt.Sprintf("%s: the tests fail without a bug:\n%s", m.target, output)
	case m.file != "" && passed:
		return fmt.Sprintf("%s: SURVIVED: %s\n\t%s: %s  =>  %s", m.target, m.why, m.file, m.old, m.new)
	case m.file != "" && !failure.MatchString(output):
		return fmt.Sprintf("%s: %s: the tests ended without a verdict:\n%s", m.target, m.why, output)
	}
	return ""
}

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^panic: (.*)`)

// prepare makes what the tests of a mutant need: their binary and, if the bug is in a
// script, the scripts.
func (r *runner) prepare(ctx context.Context, m mutant) (binary string, remove func(), err error) {
	if m.isScript() {
		scripts := r.scripts(m)
		binary, err = r.reader(ctx, m.target)()
		if err == nil {
			err = r.writeScripts(m, scripts)
		}
		return binary, func() { _ = os.RemoveAll(scripts) }, err
	}
	binary = filepath.Join(r.tmp, m.name+".test")
	if m.file == "" {
		return binary, func() { _ = os.Remove(binary) }, r.build(ctx, m.target, binary, nil)
	}
	source, err := m.source(r.root)
	if err == nil {
		err = r.build(ctx, m.target, binary, map[string][]byte{m.file: source})
	}
	return binary, func() { _ = os.Remove(binary) }, err
}

// scriptsEnv names the directory of the scripts to the tests of a mutant.
const scriptsEnv = "NEAP_MUTANT_SCRIPTS"

// fromDirectory is package lua with the scripts of a directory. So one binary does for the
// bugs of all scripts.
const fromDirectory = `package lua

import (
	"io/fs"
	"os"
)

var FS fs.FS = os.DirFS(os.Getenv("` + scriptsEnv + `"))

var limits = FS
`

// reader makes the binary of a package's tests that read the scripts from a directory,
// once.
func (r *runner) reader(ctx context.Context, target string) func() (binary string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read == nil {
		r.read = map[string]func() (string, error){}
	}
	if r.read[target] == nil {
		binary := filepath.Join(r.tmp, strings.ReplaceAll(target, "/", "-")+"-scripts.test")
		r.read[target] = sync.OnceValues(func() (string, error) {
			return binary, r.build(ctx, target, binary, map[string][]byte{"lua/lua.go": []byte(fromDirectory)})
		})
	}
	return r.read[target]
}

func (r *runner) scripts(m mutant) (dir string) { return filepath.Join(r.tmp, m.name+"-scripts") }

// writeScripts writes all scripts into a directory, one of them with the bug.
func (r *runner) writeScripts(m mutant, dir string) error {
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(r.root, "lua"))); err != nil {
		return err
	}
	source, err := m.source(r.root)
	if err != nil {
		return err
	}
	name, err := filepath.Rel("lua", m.file)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), source, 0o600)
}

// build makes the binary of a package's tests. The compiler reads the changed files as an
// overlay.
func (r *runner) build(ctx context.Context, target, binary string, changed map[string][]byte) error {
	args := []string{"test", "-c", "-ldflags=-s -w", "-o", binary}
	if changed != nil {
		overlay, err := r.overlay(binary, changed)
		if err != nil {
			return err
		}
		args = append(args, "-overlay", overlay)
	}
	build := exec.CommandContext(ctx, "go", append(args, ".")...)
	build.Dir = filepath.Join(r.root, target) // which may be a module of its own
	r.builds <- struct{}{}
	out, err := build.CombinedOutput()
	<-r.builds
	if err != nil {
		return fmt.Errorf("it does not compile:\n%s", out)
	}
	return nil
}

// overlay writes the overlay with which the compiler reads the changed files.
func (r *runner) overlay(binary string, changed map[string][]byte) (path string, err error) {
	replace := map[string]string{}
	for file, source := range changed {
		path := fmt.Sprintf("%s-%d.go", binary, len(replace))
		if err := os.WriteFile(path, source, 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(r.root, file)] = path
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err == nil {
		err = os.WriteFile(binary+".json", overlay, 0o600)
	}
	return binary + ".json", err
}

// execute runs a package's tests.
func (r *runner) execute(ctx context.Context, m mutant, binary string) (output string, passed bool) {
	tests := exec.CommandContext(ctx, binary, "-test.short", "-test.failfast", "-test.timeout="+m.limit().String(), "-test.run="+m.tests)
	tests.Dir = filepath.Join(r.root, m.target)
	tests.Env = append(os.Environ(), scriptsEnv+"="+r.scripts(m), "NEAP_TEST_SCALE="+m.scale())
	out, err := tests.CombinedOutput()
	if r.verbose {
		fmt.Printf("%s:\n%s\n", m.name, out)
	}
	return string(out), err == nil
}

// limit is longer where all tests of a package run beside mutants that are busy.
func (m mutant) limit() time.Duration {
	if m.file == "" && m.busy {
		return 10 * limit
	}
	return limit
}

// scale is how much the tests generate: more if only few of them run.
func (m mutant) scale() string {
	if m.few {
		return "0.3"
	}
	return "0.1"
}

func (r *runner) caughtBy(m mutant, output string) {
	found := failure.FindAllStringSubmatch(output, 2)
	test := found[len(found)-1] // a subtest says more than its test
	r.mu.Lock()
	defer r.mu.Unlock()
	r.caught++
	fmt.Printf("%-10s caught: %s (%s)\n", m.target, m.why, test[1]+test[2])
}

func (r *runner) fault(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, text)
	fmt.Println(text)
}

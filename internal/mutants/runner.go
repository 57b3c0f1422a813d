package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

// limit is how long an adapter's tests may take. With a bug they may wait for something
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
}

// test expects the tests of a mutant to fail, and those of the adapter without a
// bug to pass.
func (r *runner) test(ctx context.Context, m mutant) {
	binary, err := r.build(ctx, m)
	if err != nil {
		r.fault(fmt.Sprintf("%s: %s: %v", m.adapter, m.why, err))
		return
	}
	defer os.Remove(binary)
	for try := 1; ; try++ {
		output, passed := r.execute(ctx, m, binary)
		fault := m.fault(output, passed)
		switch {
		case ctx.Err() != nil:
			r.fault(fmt.Sprintf("%s: %v", m.adapter, ctx.Err()))
			return
		case fault == "" && m.file == "":
			return
		case fault == "":
			r.caughtBy(m, output)
			return
		case try == tries:
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
		return fmt.Sprintf("%s: the tests fail without a bug:\n%s", m.adapter, output)
	case m.file != "" && passed:
		return fmt.Sprintf("%s: SURVIVED: %s\n\t%s: %s  =>  %s", m.adapter, m.why, m.file, m.old, m.new)
	case m.file != "" && !failure.MatchString(output):
		return fmt.Sprintf("%s: %s: the tests ended without a verdict:\n%s", m.adapter, m.why, output)
	}
	return ""
}

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^panic: (.*)`)

// build makes the binary of an adapter's tests.
func (r *runner) build(ctx context.Context, m mutant) (binary string, err error) {
	binary = filepath.Join(r.tmp, m.name+".test")
	args := []string{"test", "-c", "-ldflags=-s -w", "-o", binary}
	if m.file != "" {
		overlay, err := r.overlay(m)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	build := exec.CommandContext(ctx, "go", append(args, ".")...)
	build.Dir = filepath.Join(r.root, m.adapter) // which may be a module of its own
	r.builds <- struct{}{}
	out, err := build.CombinedOutput()
	<-r.builds
	if err != nil {
		return "", fmt.Errorf("it does not compile:\n%s", out)
	}
	return binary, nil
}

// overlay writes the overlay with which the compiler reads the changed file.
func (r *runner) overlay(m mutant) (path string, err error) {
	source, err := m.source(r.root)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(r.tmp, m.name+".go")
	overlay, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(r.root, m.file): changed},
	})
	if err == nil {
		err = os.WriteFile(changed, source, 0o600)
	}
	if err == nil {
		err = os.WriteFile(changed+".json", overlay, 0o600)
	}
	return changed + ".json", err
}

// execute runs an adapter's tests.
func (r *runner) execute(ctx context.Context, m mutant, binary string) (output string, passed bool) {
	tests := exec.CommandContext(ctx, binary, "-test.short", "-test.failfast", "-test.timeout="+limit.String())
	tests.Dir = filepath.Join(r.root, m.adapter)
	out, err := tests.CombinedOutput()
	if r.verbose {
		fmt.Printf("%s:\n%s\n", filepath.Base(binary), out)
	}
	return string(out), err == nil
}

func (r *runner) caughtBy(m mutant, output string) {
	found := failure.FindAllStringSubmatch(output, 2)
	test := found[len(found)-1] // a subtest says more than its test
	r.mu.Lock()
	defer r.mu.Unlock()
	r.caught++
	fmt.Printf("%-10s caught: %s (%s)\n", m.adapter, m.why, test[1]+test[2])
}

func (r *runner) fault(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, text)
	fmt.Println(text)
}

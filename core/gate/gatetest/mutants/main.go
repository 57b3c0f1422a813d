package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
)

func main() {
	if err := command(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func command() error {
	only := flag.String("adapter", "", "mutate only this adapter")
	verbose := flag.Bool("v", false, "show the tests' output for every bug")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return run(ctx, *only, *verbose)
}

func run(ctx context.Context, only string, verbose bool) error {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("go list -m: %w", err)
	}
	tmp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	g := mutator{
		root: strings.TrimSpace(string(out)), tmp: tmp, verbose: verbose,
		builds: make(chan struct{}, runtime.NumCPU()),
	}

	turns := make(chan struct{}, 3*runtime.NumCPU()) // tests wait for most of their time
	var wg sync.WaitGroup
	found := false
	for _, a := range adapters {
		if only != "" && only != a.name {
			continue
		}
		found = true
		if len(a.bugs) < fewest {
			g.fault("%s: %d mutants, want %d at least", a.name, len(a.bugs), fewest)
		}
		for i := -1; i < len(a.bugs); i++ {
			turns <- struct{}{}
			wg.Go(func() {
				defer func() { <-turns }()
				if i < 0 {
					g.control(ctx, a)
				} else {
					g.mutate(ctx, a, i)
				}
			})
		}
	}
	wg.Wait()
	switch {
	case !found:
		return fmt.Errorf("no adapter %q", only)
	case len(g.faults) > 0: // once more, where who reads the end of a log finds them
		return fmt.Errorf("%d bugs caught, and %d faults:\n%s", g.caught, len(g.faults), strings.Join(g.faults, "\n"))
	}
	fmt.Printf("%d mutants, all caught\n", g.caught)
	return nil
}

// mutator makes mutants of the adapters and tests them.
type mutator struct {
	root, tmp string
	verbose   bool
	builds    chan struct{} // one for each that may be made at a time

	mu     sync.Mutex
	caught int
	faults []string
}

// limit is how long an adapter's tests may take; with a bug they may wait for
// what never comes.
const limit = 90 * time.Second

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^panic: (.*)`)

// tries is how often the tests of one binary may run until they say what they
// must: beside the builds of others, a test now and then sees a bug too late, or
// gives up without one.
const tries = 3

// control expects the tests to pass without a bug.
func (g *mutator) control(ctx context.Context, a adapter) {
	binary, err := g.build(ctx, a, "control", nil)
	if err != nil {
		g.fault("%s: %v", a.name, err)
		return
	}
	g.judge(ctx, a, binary, func(output string, ok bool) (fault string) {
		if !ok {
			return fmt.Sprintf("%s: the tests fail without a bug:\n%s", a.name, output)
		}
		return ""
	})
}

// mutate expects them to fail with one.
func (g *mutator) mutate(ctx context.Context, a adapter, i int) {
	b := a.bugs[i]
	source, err := b.source(g.root)
	if err != nil {
		g.fault("%s: %s: %v", a.name, b.why, err)
		return
	}
	name := fmt.Sprintf("%s-%d", a.name, i)
	changed := filepath.Join(g.tmp, name+".go")
	overlay, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(g.root, b.file): changed},
	})
	if err == nil {
		err = os.WriteFile(changed, source, 0o600)
	}
	if err == nil {
		err = os.WriteFile(changed+".json", overlay, 0o600)
	}
	if err != nil {
		g.fault("%s: %v", name, err)
		return
	}
	binary, err := g.build(ctx, a, name, []string{"-overlay", changed + ".json"})
	if err != nil {
		g.fault("%s: %s: %v", a.name, b.why, err)
		return
	}
	g.judge(ctx, a, binary, func(output string, ok bool) (fault string) {
		match := failed.FindAllStringSubmatch(output, -1)
		switch {
		case ok:
			return fmt.Sprintf("%s: SURVIVED: %s\n\t%s: %s  =>  %s", a.name, b.why, b.file, b.old, b.new)
		case match == nil:
			return fmt.Sprintf("%s: %s: the tests ended without a verdict:\n%s", a.name, b.why, output)
		}
		first := match[min(1, len(match)-1)] // a subtest says more than its test
		g.say("%-10s caught: %s (%s)", a.name, b.why, first[1]+first[2])
		return ""
	})
}

// judge runs an adapter's tests until the verdict finds no fault with them.
func (g *mutator) judge(ctx context.Context, a adapter, binary string, verdict func(output string, ok bool) (fault string)) {
	defer os.Remove(binary)
	for try := 1; ; try++ {
		output, ok := g.test(ctx, a, binary)
		if ctx.Err() != nil {
			g.fault("%s: %v", a.name, ctx.Err())
			return
		}
		fault := verdict(output, ok)
		switch {
		case fault == "":
			return
		case try == tries:
			g.fault("%s", fault)
			return
		}
		g.again(fault)
	}
}

// build makes the binary of an adapter's tests.
func (g *mutator) build(ctx context.Context, a adapter, name string, flags []string) (binary string, err error) {
	binary = filepath.Join(g.tmp, name+".test")
	args := append([]string{"test", "-c", "-ldflags=-s -w", "-o", binary}, flags...)
	build := exec.CommandContext(ctx, "go", append(args, "./"+a.name)...)
	build.Dir = g.root
	g.builds <- struct{}{}
	out, err := build.CombinedOutput()
	<-g.builds
	if err != nil {
		return "", fmt.Errorf("it does not compile:\n%s", out)
	}
	return binary, nil
}

// test runs an adapter's tests; ok says whether they passed.
func (g *mutator) test(ctx context.Context, a adapter, binary string) (output string, ok bool) {
	tests := exec.CommandContext(ctx, binary, "-test.short", "-test.failfast", "-test.timeout="+limit.String())
	tests.Dir = filepath.Join(g.root, a.name)
	out, err := tests.CombinedOutput()
	if g.verbose {
		fmt.Printf("%s:\n%s\n", filepath.Base(binary), out)
	}
	return string(out), err == nil
}

func (g *mutator) say(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.caught++
	fmt.Printf(format+"\n", args...)
}

// again says what was wrong with tests that will be run once more.
func (g *mutator) again(fault string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	fmt.Printf("%s\nonce more\n", fault)
}

func (g *mutator) fault(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults = append(g.faults, fmt.Sprintf(format, args...))
	fmt.Println(g.faults[len(g.faults)-1])
}

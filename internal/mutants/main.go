// Mutants shows that tests can fail: the contract of the adapters, and the tests of limits,
// of calls to others and of several locks. It changes one place of a source at a time. Each
// change is a mistake that is easily made there. Mutants runs the package's tests on the
// changed source, and expects them to fail:
//
//	go run ./internal/mutants [-of core/limit] [-night 2] [-v]
//
// With -night it makes a seventh of the bugs, so that seven nights in a row make them all.
//
// It exits with 1 if a change does not apply or does not compile, if the tests pass on a
// change three times in a row, or if they fail without a change. It writes nothing into
// the checkout: the compiler gets the changed file as an overlay.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
)

func main() {
	if err := command(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func command() error {
	only := flag.String("of", "", "mutate only this package")
	night := flag.Int("night", -1, "make a seventh of the bugs: the day of the year chooses it")
	verbose := flag.Bool("v", false, "show the tests' output for every bug")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return run(ctx, *only, *night, *verbose)
}

func run(ctx context.Context, only string, night int, verbose bool) error {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("go list -m: %w", err)
	}
	tmp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	r := runner{
		root: strings.TrimSpace(string(out)), tmp: tmp, verbose: verbose,
		builds: make(chan struct{}, runtime.NumCPU()),
	}

	const busyTakes = 3
	turns := make(chan struct{}, busyTakes*runtime.NumCPU()) // tests wait for most of their time, unless they are busy
	var wg sync.WaitGroup
	found := false
	for _, of := range targets {
		if only != "" && only != of.name {
			continue
		}
		found = true
		takes := 1
		if of.busy {
			takes = busyTakes
		}
		for _, m := range of.tonight(night) {
			for range takes {
				turns <- struct{}{}
			}
			wg.Go(func() {
				r.test(ctx, m)
				for range takes {
					<-turns
				}
			})
		}
	}
	wg.Wait()
	switch {
	case !found:
		return fmt.Errorf("no mutants of %q", only)
	case len(r.faults) > 0: // printed again, so that they stand at the end of the log
		return fmt.Errorf("%d bugs caught, and %d faults:\n%s", r.caught, len(r.faults), strings.Join(r.faults, "\n"))
	}
	fmt.Printf("%d mutants, all caught\n", r.caught)
	return nil
}

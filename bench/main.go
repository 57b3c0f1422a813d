// Bench measures neap beside other limiters, locks and guards, and callbacks with
// it and without, on a redis-server that it starts itself, and writes what it found
// to RESULTS.md, RESULTS.svg, LOCKS.md, GUARD.md, CALLBACKS.md and STOCK.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// parts are what is measured, in turn.
var parts = []string{"locks", "guard", "callbacks", "stock", "limits"}

func main() {
	var p plan
	flag.IntVar(&p.rounds, "rounds", 5, "rounds of each way of asking")
	flag.DurationVar(&p.slice, "slice", 120*time.Millisecond, "how long a contestant is asked in a round")
	flag.IntVar(&p.tries, "tries", 3, "how often each is asked by many callers at once for more than it has")
	keys := flag.Int("keys", 100_000, "how many keys there are beside the one hot key")
	what := flag.String("only", "", strings.Join(parts, ", ")+"; all otherwise")
	dir := flag.String("out", ".", "the directory to write to")
	flag.Parse()
	p.keys, p.goroutines = []int{1, *keys}, []int{1, 16, 256}

	if err := run(context.Background(), p, *what, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, p plan, only, dir string) (err error) {
	if only != "" && !slices.Contains(parts, only) {
		return fmt.Errorf("-only is %q: use one of %s, or leave it out for all", only, strings.Join(parts, ", "))
	}
	if p.rounds < 1 || p.tries < 1 || p.slice <= 0 || p.keys[1] < 2 || p.keys[1] > 1<<24 {
		return errors.New("rounds, tries and slice must be positive, keys from 2 to 16,777,216")
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	s, err := startServer()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	measures := map[string]func(context.Context, plan, string) error{
		"locks": s.locks, "guard": s.guard, "callbacks": s.callbacks, "stock": s.stock, "limits": s.limits,
	}
	for _, part := range parts {
		if only == "" || only == part {
			if err := measures[part](ctx, p, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *server) limits(ctx context.Context, p plan, dir string) (err error) {
	r := &results{plan: p, contestants: contestants(), when: time.Now()}
	if r.host, err = s.host(ctx); err != nil {
		return err
	}
	if r.facts, err = s.learn(ctx, r.contestants, p.tries, os.Stderr); err != nil {
		return err
	}
	if r.measured, err = s.measure(ctx, p, r.contestants, os.Stderr); err != nil {
		return err
	}
	return errors.Join(
		write(filepath.Join(dir, "RESULTS.md"), r.report()),
		write(filepath.Join(dir, "RESULTS.svg"), r.picture()),
	)
}

// locks hand over for longer than a limiter is asked: some wait for most of a
// second.
func (s *server) locks(ctx context.Context, p plan, dir string) error {
	const waits = 20
	r, err := s.measureLocks(ctx, p.rounds, waits*p.slice, os.Stderr)
	if err != nil {
		return err
	}
	return write(filepath.Join(dir, "LOCKS.md"), r.report())
}

// longer than a limiter is asked: a collection of garbage is to be a small part of
// a slice.
const longer = 3

func (s *server) guard(ctx context.Context, p plan, dir string) error {
	r, err := s.measureGuards(ctx, guardings(), crowds, p.rounds, longer*p.slice, os.Stderr)
	if err != nil {
		return err
	}
	return write(filepath.Join(dir, "GUARD.md"), r.report())
}

// callbacks has client and server share one core.
func (s *server) callbacks(ctx context.Context, p plan, dir string) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r, err := s.measureGuards(ctx, callbackings(), crowds, p.rounds, longer*p.slice, os.Stderr)
	if err != nil {
		return err
	}
	return write(filepath.Join(dir, "CALLBACKS.md"), (&callbackResults{r}).report())
}

func (s *server) stock(ctx context.Context, p plan, dir string) error {
	r, err := s.measureGuards(ctx, sellings(), saleCrowds, p.rounds, longer*p.slice, os.Stderr)
	if err != nil {
		return err
	}
	return write(filepath.Join(dir, "STOCK.md"), (&saleResults{r}).report())
}

func write(name, text string) error { return os.WriteFile(name, []byte(text), 0o644) } //nolint:gosec // for everyone to read

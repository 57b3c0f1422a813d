// Bench measures neap beside other limiters, locks and guards, and callbacks and
// sales with neap and without. It starts a redis-server of its own, and writes a
// report on each: RESULTS.md with RESULTS.svg and GLANCE.svg, LOAD.md, LOCKS.md, GUARD.md, CALLBACKS.md, STOCK.md
// and HTTP.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// plan is how a run measures.
type plan struct {
	rounds     int
	slice      time.Duration // of one contestant in one round
	tries      int           // of many callers at once on one limit
	keys       []int         // 1 is one hot key
	goroutines []int         // that call at the same time
	budget     time.Duration // of LOAD.md's contestants; 0 is neap's default
}

// benchmark is one report: how it is measured and how it is described.
type benchmark struct {
	name, file string
	slices     int // how long its slice is, in slices of a limiter
	goroutines []int
	measure    func(*server, context.Context, *results) error
	report     func(*results) report
}

// benchmarks are in the order in which they run. A hand-over has waits of most of a
// second. A guard's slice is so long that a collection of garbage is a small part.
var benchmarks = []benchmark{
	{"locks", "LOCKS.md", 20, []int{1, 16}, (*server).locks, locksReport},
	{"guard", "GUARD.md", 3, []int{1, 16}, requests([]way{first, replayed}, guards, fiberGuards), guardReport},
	{"callbacks", "CALLBACKS.md", 3, []int{1, 16}, (*server).callbacks, callbacksReport},
	{"stock", "STOCK.md", 3, []int{16, 256}, requests([]way{sold, refused}, sales), salesReport},
	{"http", "HTTP.md", 3, []int{16, 256}, requests([]way{admitted, denied}, servedLimits), servedReport},
	{"limits", "RESULTS.md", 1, []int{1, 16, 256}, (*server).limits, limitsReport},
	{"ends", "LOAD.md", 5, []int{many, most}, (*server).ends, endsReport},
}

func main() {
	var names []string
	for _, b := range benchmarks {
		names = append(names, b.name)
	}
	var p plan
	flag.IntVar(&p.rounds, "rounds", 5, "rounds of each way of asking")
	flag.DurationVar(&p.slice, "slice", 120*time.Millisecond, "how long a limiter is asked in a round")
	flag.IntVar(&p.tries, "tries", 3, "how often many callers at once ask a limiter for more than its limit")
	keys := flag.Int("keys", 100_000, "how many keys there are beside the one hot key")
	only := flag.String("only", "", strings.Join(names, ", ")+"; all otherwise")
	dir := flag.String("out", ".", "the directory to write to")
	flag.Parse()
	p.keys = []int{1, *keys}

	err := fmt.Errorf("-only is %q: use one of %s, or leave it out for all", *only, strings.Join(names, ", "))
	if *only == "" || slices.Contains(names, *only) {
		err = run(context.Background(), p, *only, *dir, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, p plan, only, dir string, progress io.Writer) (err error) {
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
	for _, b := range benchmarks {
		if only != "" && only != b.name {
			continue
		}
		r, err := s.results(ctx, b, p, progress)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		files, err := b.report(r).files(b.file, r)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // for all to read
				return err
			}
		}
	}
	return nil
}

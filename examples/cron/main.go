// Five processes run one job at each tick. One of them is killed in the middle
// of a tick, and another takes it over.
//
// The program starts the processes itself, prints which ran what, and fails
// when a tick completed twice or never. Without -redis they meet in an embedded
// Redis.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/examples/internal/backend"
)

const (
	every = 500 * time.Millisecond
	ticks = 6
)

func main() {
	url := flag.String("redis", "", backend.FlagUsage)
	process := flag.String("process", "", "be one of the five, by this name")
	first := flag.Int64("first", 0, "the first tick of such a process, in milliseconds since 1970")
	flag.Parse()
	var err error
	if *process == "" {
		err = play(context.Background(), *url)
	} else {
		err = serve(*url, *process, time.UnixMilli(*first))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cron:", err)
		os.Exit(1)
	}
}

// serve is what each process does. A real one goes on for ever.
func serve(url, process string, first time.Time) error {
	s, err := backend.Connect(context.Background(), url)
	if err != nil {
		return err
	}
	defer s.Close()
	// A process that does not renew its lease is taken for dead.
	jobs, err := lock.New(s.Redis, "jobs", &lock.Options{Lease: 3 * time.Second, Budget: time.Second})
	if err != nil {
		return err
	}
	for i := range ticks {
		tick := first.Add(time.Duration(i) * every) // not time.Now: all five mean the same
		time.Sleep(time.Until(tick))
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		ran, err := jobs.Once(ctx, "report", tick, lock.Again, func(ctx context.Context) error {
			fmt.Println(tick.Format(clock), process, "began", time.Since(tick).Round(100*time.Millisecond), "late")
			return report(ctx)
		})
		cancel()
		switch {
		case err != nil:
			fmt.Println(tick.Format(clock), process, "failed:", err)
		case ran:
			fmt.Println(tick.Format(clock), process, "completed")
		}
	}
	return nil
}

const clock = "15:04:05.000"

// report is the job. It stops when its lock is lost, since then another begins.
func report(ctx context.Context) error {
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

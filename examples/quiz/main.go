// Players of a quiz answer questions: each answer moves the score of the day,
// the total, the prize and the board of the hundred best, by one script.
//
// The program sends random answers from many goroutines, a tenth of them twice,
// recounts them in plain Go, and fails when Redis has other figures. Without
// -redis it does so in an embedded Redis. It removes its keys in the end.
//
// The board is that of all players, so all keys of a campaign share a slot, and
// one node counts it. That is enough for some ten thousand answers a second; for
// more, make a campaign of each region, and add their boards up when they are read.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/neap-go/neap/examples/internal/backend"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "quiz:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("quiz", flag.ContinueOnError)
	url := flags.String("redis", "", backend.FlagUsage)
	answers := flags.Int("answers", 0, "how many (default 50,000, and 5,000 in an embedded Redis)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *answers == 0 {
		*answers = 50_000
		if *url == "" {
			*answers = 5_000
		}
	}
	s, err := backend.Connect(ctx, *url)
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := New(s.Redis, rand.Text()) // a campaign of this run alone
	if err != nil {
		return err
	}
	return errors.Join(play(ctx, c, random(*answers), out), backend.RemoveKeys(ctx, s.Redis, c.prefix()))
}

// random answers come from three days, and from players some of whom play more
// than others.
func random(n int) []Answer {
	all := make([]Answer, 0, n)
	points := map[[2]string]Answer{}
	for range n {
		player := fmt.Sprint("player-", mathrand.IntN(1+mathrand.IntN(500)))
		question := strconv.Itoa(mathrand.IntN(400))
		a, again := points[[2]string{player, question}]
		if !again {
			a = Answer{player, question, fmt.Sprint("2026-11-2", mathrand.IntN(3)), int64(max(mathrand.IntN(15)-5, 0))}
			points[[2]string{player, question}] = a
		}
		all = append(all, a)
	}
	return all
}

// play sends the answers, some of them twice, and recounts them.
func play(ctx context.Context, c *Campaign, all []Answer, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	queue := make(chan Answer)
	failures := make(chan error, 64)
	var workers sync.WaitGroup
	for range cap(failures) {
		workers.Go(func() {
			for a := range queue {
				sent := 1 + mathrand.IntN(10)/9
				for range sent {
					if _, err := c.Answer(ctx, a); err != nil {
						failures <- err
						return
					}
				}
			}
		})
	}
	go func() {
		defer close(queue)
		for _, a := range all {
			select {
			case queue <- a:
			case <-ctx.Done():
				return
			}
		}
	}()
	workers.Wait()
	close(failures)
	var failed []error
	for err := range failures {
		failed = append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	took := time.Since(began)
	t := recount(all)
	if err := c.compare(ctx, t); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d answers of %d players in %v\n", len(all), len(t.totals), took.Round(time.Millisecond))
	for i, s := range t.board[:min(3, len(t.board))] {
		fmt.Fprintf(out, "%d. %s, %d points\n", i+1, s.Player, s.Total)
	}
	fmt.Fprintf(out, "scores, totals, prizes and the %d best are as recounted\n", len(t.board))
	return nil
}

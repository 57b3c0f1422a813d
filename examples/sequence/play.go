package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/examples/internal/backend"
)

// play starts the processes and says what is wrong with what they took. It leaves
// the sequence's one key where it is, as a shop must: a sequence without its record
// begins anew. It expires after keep.
func play(ctx context.Context, url, zone string) error {
	ctx, end := context.WithCancel(ctx)
	defer end() // of the processes too
	s, err := backend.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer s.Close()
	_, cluster := s.Redis.(*redis.ClusterClient)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	key := "sequence:{" + rand.Text() + "}" // of this run alone; a shop's has a name
	lines := make(chan string)
	var running sync.WaitGroup
	for range processes {
		cmd := exec.CommandContext(ctx, self, "-process", key, "-redis", s.URL, "-zone", zone, fmt.Sprint("-cluster=", cluster))
		cmd.Stderr = os.Stderr
		if _, err := cmd.StdinPipe(); err != nil { // the process watches it
			return err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		running.Go(func() {
			for text := bufio.NewScanner(out); text.Scan(); {
				lines <- text.Text()
			}
			_ = cmd.Wait() // what it did not take is missed below
		})
	}
	go func() {
		running.Wait()
		close(lines)
	}()

	var all []given
	for line := range lines {
		g, err := parse(line)
		if err != nil {
			return fmt.Errorf("a process said %q: %w", line, err)
		}
		all = append(all, g)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(all) != 2*processes*each {
		return fmt.Errorf("%d numbers were given out, not %d", len(all), 2*processes*each)
	}
	if err := judge(all); err != nil {
		return err
	}
	fmt.Println(summary("single", all))
	fmt.Println(summary("block", all))
	fmt.Println("each once, and larger than those before it")
	return nil
}

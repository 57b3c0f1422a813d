package main

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/examples/internal/backend"
	"github.com/neap-go/neap/examples/internal/self"
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
	key := "sequence:{" + rand.Text() + "}"                        // of this run alone; a shop's has a name
	lines, _, err := self.All(ctx, processes, func(int) []string { // what one did not take is missed below
		return []string{"-process", key, "-redis", s.URL, "-zone", zone, fmt.Sprint("-cluster=", cluster)}
	})
	if err != nil {
		return err
	}
	var all []given
	for line := range lines {
		g, err := parse(line.Text)
		if err != nil {
			return fmt.Errorf("a process said %q: %w", line.Text, err)
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

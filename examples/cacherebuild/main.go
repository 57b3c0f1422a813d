// A hot entry of a cache goes stale under a thousand requests at once. One of
// them rebuilds it from a slow source; the others get the old value, or wait
// where there is none.
//
// The program prints how often the source was asked, and fails when that is not
// once. Without -redis the cache is in an embedded Redis.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/examples/internal/backend"
)

const requests = 1000

func main() {
	url := flag.String("redis", "", backend.FlagUsage)
	flag.Parse()
	if err := play(context.Background(), *url); err != nil {
		fmt.Fprintln(os.Stderr, "cacherebuild:", err)
		os.Exit(1)
	}
}

func play(ctx context.Context, url string) error {
	s, err := backend.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer s.Close()
	rdb := s.Redis
	// A thousand requests wait for a few connections at first; and where nothing
	// is cached they pass through the lock one by one.
	locks, err := lock.New(rdb, "rebuild", &lock.Options{Budget: time.Minute, Wait: time.Minute})
	if err != nil {
		return err
	}
	var queries atomic.Int64
	c := &cache{rdb: rdb, locks: locks, fresh: time.Minute, kept: time.Hour}
	c.source = func(context.Context, string) (string, error) {
		time.Sleep(300 * time.Millisecond) // as a report over a large table does
		return fmt.Sprintf("price %d", queries.Add(1)), nil
	}
	name := fmt.Sprint("price-", time.Now().UnixNano())
	defer rdb.Del(ctx, valueOf(name), freshOf(name))

	for round, state := range []string{"nothing is cached", "the entry is stale"} {
		if err := rdb.Del(ctx, freshOf(name)).Err(); err != nil { // its minute is over
			return err
		}
		answers, err := hurry(ctx, c, name)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %d requests get %v; source queries: %d\n", state, requests, answers, queries.Load()-int64(round))
		if queries.Load() != int64(round)+1 {
			return fmt.Errorf("the source was asked %d times", queries.Load()-int64(round))
		}
	}
	return nil
}

// hurry sends all requests at once, and counts their answers.
func hurry(ctx context.Context, c *cache, name string) (map[string]int, error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	answers, failed := map[string]int{}, error(nil)
	for range requests {
		wg.Go(func() {
			value, err := c.get(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			answers[value]++
			if err != nil {
				failed = err
			}
		})
	}
	wg.Wait()
	return answers, failed
}

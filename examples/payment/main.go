// A shop that takes the callbacks of eight payment providers, and a simulator
// that plays the providers: their published schedules of sending again, on a
// clock of its own, against two processes of the shop.
//
// Deliveries come twice and at once, their senders hang up before the answer,
// answers get lost, signatures and timestamps are made anew, the handler fails,
// a process is killed between the booking and its acknowledgement, and Redis is
// away or restarts meanwhile. They tell of payments that fail, too, and of one that
// was booked, months later. The program fails unless each payment and refund was
// booked exactly once, and nothing else was, nothing was acknowledged before it was
// booked, no handler ran more often than that explains, and every provider was told
// in the end. Without -redis-server the processes meet in an embedded Redis, which lives
// by the simulator's clock.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

func main() {
	command := flag.String("redis-server", "", "a redis-server to start (default an embedded Redis)")
	url := flag.String("serve", "", "be a process of the shop, with its Redis at this URL")
	file := flag.String("db", "", "the database of such a process")
	key := flag.String("key", "", "what Alipay and WeChat Pay publish of their key, for such a process")
	lease := flag.Duration("lease", 0, "how soon another takes over from such a process that died")
	flag.Parse()
	logging.Disable() // go-redis': that Redis is away is part of the play
	ctx := context.Background()
	var err error
	if *url == "" {
		err = play(ctx, *command)
	} else {
		err = serve(ctx, *url, *file, *key, *lease)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "payment:", err)
		os.Exit(1)
	}
}

func play(ctx context.Context, command string) error {
	ctx, end := context.WithTimeout(ctx, 5*time.Minute)
	defer end()
	dir, err := os.MkdirTemp("", "payment")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	store, err := newStore(ctx, command, dir)
	if err != nil {
		return err
	}
	defer store.stop()
	s, err := newSimulation(ctx, store, dir)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.run(ctx); err != nil {
		return err
	}
	return s.report(ctx)
}

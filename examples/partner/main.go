// Five processes call somebody's API, which allows 200 requests in any 20 seconds. They
// send as many as they can, and no more than it allows together.
//
// The program starts the processes, and a partner who counts. In the middle the partner
// refuses one request for no reason: no process may ask again until its Retry-After is
// over. The program fails if the partner had to refuse a request by itself, or was asked
// too early. Without -redis the processes meet in an embedded Redis:
//
//	go run ./examples/partner -redis redis://localhost:6379 -for 60s
//
// What a process does is in client.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/examples/internal/backend"
	"github.com/neap-go/neap/examples/internal/self"
)

const (
	processes = 5
	allowed   = 200              // requests
	window    = 20 * time.Second // in any
)

// options are the words of the command.
type options struct {
	redis, process string
	cluster        bool
	share          int
	lasts          time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.redis, "redis", "", backend.FlagUsage)
	flag.IntVar(&o.share, "share", 95, "how much of what the partner allows the processes use, in percent")
	flag.DurationVar(&o.lasts, "for", 30*time.Second, "how long the processes send requests")
	flag.StringVar(&o.process, "process", "", "be one of the processes, with the partner at this URL")
	flag.BoolVar(&o.cluster, "cluster", false, "to such a process: the Redis is a cluster")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, &o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "partner:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options, out io.Writer) error {
	if o.share < 1 || o.share > 100 {
		return errors.New("-share is a number from 1 to 100")
	}
	if o.process != "" {
		return send(self.WhileOpen(ctx, os.Stdin), o)
	}
	s, err := backend.Connect(ctx, o.redis)
	if err != nil {
		return err
	}
	defer s.Close()
	_, o.cluster = s.Redis.(*redis.ClusterClient)
	p := newPartner(o.lasts / 2)
	defer p.Close()
	fmt.Fprintf(out, "%d processes, %d %% of %d requests in %v; the limit is in %s\n", processes, o.share, allowed, window, s.Where)
	said, ended, err := self.All(ctx, processes, func(int) []string {
		return []string{"-process", p.URL, "-redis", s.URL, fmt.Sprint("-cluster=", o.cluster), fmt.Sprint("-share=", o.share), fmt.Sprint("-for=", o.lasts)}
	})
	if err != nil {
		return err
	}
	for line := range said {
		fmt.Fprintln(out, line.Text)
	}
	if err := ended(); err != nil {
		return err
	}
	fmt.Fprintln(out, p)
	return errors.Join(p.judge(), backend.RemoveKeys(context.WithoutCancel(ctx), s.Redis, prefixOf(p.URL)))
}

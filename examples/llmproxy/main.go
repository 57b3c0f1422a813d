// A proxy in front of a model: tokens and requests a minute for each user and for each model. A request takes
// an estimate of its tokens and is settled to what the upstream reports. If there is no room, it waits for two seconds at
// most before it gets a 429. The limits are in limits.go; the rest is a reverse proxy and a model that is none.
//
// The program serves until it is interrupted, and prints what each request was estimated at and used. Without -redis the
// limits are in an embedded Redis.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/examples/internal/backend"
	"github.com/neap-go/neap/examples/internal/host"
)

func main() {
	logging.Disable() // go-redis': what it would say is in the errors of run
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "llmproxy:", err)
		os.Exit(1)
	}
}

// pace is how fast the model speaks.
const pace = 20 * time.Millisecond

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("llmproxy", flag.ContinueOnError)
	address := flags.String("redis", "", backend.FlagUsage)
	addr := flags.String("addr", "localhost:8080", "where it listens")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := backend.Connect(ctx, *address)
	if err != nil {
		return err
	}
	defer s.Close()
	// The prefix is of this run alone. The budget is for a machine that plays the upstream too.
	prefix := "neap-llmproxy-" + strings.ToLower(rand.Text()[:8])
	st, err := store.Open(s.Redis, &store.Options{Prefix: prefix, Budget: 10 * time.Second})
	if err != nil {
		return err
	}
	l, err := newLimits(st)
	if err != nil {
		return err
	}
	return errors.Join(serve(ctx, l, *addr, out), backend.RemoveKeys(ctx, s.Redis, prefix))
}

// serve waits for requests until ctx ends.
func serve(ctx context.Context, l limits, addr string, out io.Writer) error {
	up := newUpstream(pace)
	model, err := host.Listen(ctx, "127.0.0.1:0", host.HTTP(up))
	if err != nil {
		return err
	}
	to, err := url.Parse(model.URL)
	if err != nil {
		return errors.Join(err, model.Stop(ctx, time.Second))
	}
	proxy, err := host.Listen(ctx, addr, host.HTTP(newProxy(l, to, "upstream's own key", nil, func(c *call) {
		fmt.Fprintf(out, "%s: estimated %d, used %d\n", c.user, c.prompt+c.most, c.used())
	})))
	if err != nil {
		return errors.Join(err, model.Stop(ctx, time.Second))
	}
	fmt.Fprintf(out, curl, proxy.URL)
	select {
	case <-ctx.Done():
	case err = <-proxy.Ended:
		return errors.Join(err, model.Stop(ctx, time.Second))
	}
	up.release()
	return errors.Join(proxy.Stop(ctx, 5*time.Second), model.Stop(ctx, 5*time.Second))
}

const curl = `A user has 1,000 tokens and 20 requests a minute, a model 2,000 tokens and 100 requests. Try

  curl -iN %[1]s/v1/chat/completions -H 'Authorization: Bearer sk-ann' -H 'Content-Type: application/json' \
    -d '{"model": "small", "stream": true, "max_tokens": 600, "messages": [{"role": "user", "content": "words=50"}]}'

twice at once; end one with Ctrl-C; let it think, which no estimate knows, with "words=50&thinks=900"; have the model fail with "fails=1".

`

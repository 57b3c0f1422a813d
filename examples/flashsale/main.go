// A flash sale: 100 phones, 1,000 buyers who ask 20 times each, over 200
// connections.
//
// The program sends real HTTP over loopback, reckons from the answers what must
// have been sold to whom, and fails when the stock has it otherwise, when a phone
// was sold twice or not at all, and when a buyer has two. With -pay a phone is held
// for its buyer, and sold when the payment's callback comes, which it does twice.
// Without -redis all is in an embedded Redis.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9/logging"

	"github.com/neap-go/neap/examples/internal/backend"
)

func main() {
	logging.Disable() // go-redis': what it would say is in the errors of run
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "flashsale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var c crowd
	flags := flag.NewFlagSet("flashsale", flag.ContinueOnError)
	url := flags.String("redis", "", backend.FlagUsage)
	flags.IntVar(&c.units, "units", 100, "how many phones there are")
	flags.IntVar(&c.buyers, "buyers", 1_000, "how many want one, no fewer than there are phones")
	flags.IntVar(&c.requests, "requests", 20_000, "how many requests they send, together")
	flags.IntVar(&c.connections, "connections", 200, "over how many connections, all at once")
	flags.BoolVar(&c.pay, "pay", false, "have each phone held for its buyer, and sold when a callback says that it is paid")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if c.units < 1 || c.buyers < c.units || c.requests < c.buyers || c.connections < 1 {
		return errors.New("use 1 <= -units <= -buyers <= -requests, and a connection at least")
	}
	s, err := backend.Connect(ctx, *url)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Fprintf(out, "%d phones, %d buyers, %d requests over %d connections; the stock is in %s\n",
		c.units, c.buyers, c.requests, c.connections, s.Where)
	if c.pay {
		fmt.Fprintln(out, "a phone is held for its buyer, and sold when the payment's callback comes, which it does twice")
	}
	fmt.Fprintln(out)
	prefix := "neap-flashsale-" + strings.ToLower(rand.Text()[:8]) // of this run alone
	if err := sell(ctx, s.Redis, prefix, "phones", c, out); err != nil {
		return errors.Join(err, backend.RemoveKeys(ctx, s.Redis, prefix))
	}
	fmt.Fprintf(out, "\neach phone was sold once, and to whom the stock says\n")
	return backend.RemoveKeys(ctx, s.Redis, prefix)
}

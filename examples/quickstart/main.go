// Quickstart serves the same limited routes on net/http, Gin, Echo and Fiber.
//
// By default it sends them requests, shows what they answer and fails when a
// count is off; with -serve it waits for requests of yours. Without -redis the
// state is in an embedded Redis, so that nothing has to be installed.
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

	"github.com/redis/go-redis/v9/logging"

	"github.com/neap-go/neap/examples/internal/backend"
)

func main() {
	logging.Disable() // go-redis': what it would say is in the errors of run
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main with all that it touches, and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	s, err := backend.Connect(ctx, cfg.redis)
	if err != nil {
		fmt.Fprintln(stderr, "quickstart:", err)
		return 1
	}
	defer s.Close()

	if cfg.serve {
		err = serve(ctx, stdout, s, cfg)
	} else {
		err = demo(ctx, stdout, s, cfg.frameworks, cfg.addr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "quickstart:", err)
		return 1
	}
	return 0
}

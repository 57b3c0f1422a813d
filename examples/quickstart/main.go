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
	"slices"
	"strings"
	"syscall"
	"time"

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
	if err == nil {
		defer s.Close()
		if cfg.serve {
			err = serve(ctx, stdout, s, cfg)
		} else {
			err = demo(ctx, stdout, s, cfg.frameworks, cfg.addr)
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, "quickstart:", err)
		return 1
	}
	return 0
}

type config struct {
	frameworks []framework // -serve takes the first
	redis      string
	addr       string
	serve      bool
	budget     time.Duration // of a decision, with -serve
}

// parseFlags says on stderr what is wrong with the arguments.
func parseFlags(args []string, stderr io.Writer) (config, error) {
	cfg := config{frameworks: frameworks}
	names := strings.Join(frameworkNames(), ", ")
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(stderr)
	name := flags.String("framework", "", names+" (default all in turn; with -serve "+frameworks[0].name+")")
	flags.StringVar(&cfg.redis, "redis", "", backend.FlagUsage)
	flags.StringVar(&cfg.addr, "addr", "",
		"address to listen on (default a free port of 127.0.0.1; with -serve 127.0.0.1:8080)")
	flags.DurationVar(&cfg.budget, "budget", serveBudget, "the most time a decision takes, with -serve")
	flags.BoolVar(&cfg.serve, "serve", false, "serve until interrupted, and send nothing")
	if err := flags.Parse(args); err != nil {
		return config{}, err
	}
	var err error
	if i := slices.Index(frameworkNames(), *name); i >= 0 {
		cfg.frameworks = frameworks[i : i+1]
	} else if *name != "" {
		err = fmt.Errorf("there is no -framework %q: use one of %s", *name, names)
	}
	if flags.NArg() > 0 {
		err = fmt.Errorf("there are no arguments besides flags, but %q was given", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(stderr, "quickstart:", err)
	}
	if cfg.addr == "" {
		cfg.addr = "127.0.0.1:0"
		if cfg.serve {
			cfg.addr = "127.0.0.1:8080"
		}
	}
	return cfg, err
}

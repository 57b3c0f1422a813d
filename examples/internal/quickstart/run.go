// Package quickstart serves the same limited routes on each framework of a program,
// whatever its frameworks are.
//
// By default the program sends them requests, shows what they answer and fails when
// a count is off; with -serve it waits for requests of its user's. Without -redis the
// state is in an embedded Redis, so that nothing has to be installed.
package quickstart

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
	"github.com/neap-go/neap/examples/internal/self"
)

// Quickstart is a program of some frameworks.
type Quickstart struct {
	Frameworks []Framework
	Build      Build // of those that have no Serve
}

// Main is the main function of the program.
func (q Quickstart) Main() {
	logging.Disable() // go-redis': what it would say is in the errors of Run
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if isPart(os.Args[1:]) {
		ctx = self.WhileOpen(ctx, os.Stdin)
	}
	code := q.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Run is Main with its arguments, streams and end given. It returns the exit status.
func (q Quickstart) Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := q.parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	var code int
	switch {
	case cfg.serve && cfg.frameworks[0].Serve == nil:
		code, err = q.serveElsewhere(ctx, args, stdout, stderr)
	default:
		err = q.run(ctx, cfg, stdout, stderr)
	}
	if err != nil {
		if !cfg.part || cfg.serve {
			err = fmt.Errorf("quickstart: %w", err)
		}
		fmt.Fprintln(stderr, err)
		return 1
	}
	return code
}

func (q Quickstart) run(ctx context.Context, cfg config, stdout, stderr io.Writer) error {
	s, err := backend.Connect(ctx, cfg.redis)
	if err != nil {
		return err
	}
	defer s.Close()
	if cfg.serve {
		return serve(ctx, stdout, s, cfg)
	}
	return q.demo(ctx, stdout, stderr, s, cfg)
}

type config struct {
	frameworks []Framework // -serve takes the first
	redis      string
	addr       string
	serve      bool
	budget     time.Duration // of a decision, with -serve
	part       bool
}

// parseFlags says on stderr what is wrong with the arguments.
func (q Quickstart) parseFlags(args []string, stderr io.Writer) (config, error) {
	cfg := config{frameworks: q.Frameworks, part: isPart(args)}
	if cfg.part {
		args = args[1:]
	}
	known := names(q.Frameworks)
	list := strings.Join(known, ", ")
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(stderr)
	name := flags.String("framework", "", list+" (default all in turn; with -serve "+known[0]+")")
	flags.StringVar(&cfg.redis, "redis", "", backend.FlagUsage)
	flags.StringVar(&cfg.addr, "addr", "",
		"address to listen on (default a free port of 127.0.0.1; with -serve 127.0.0.1:8080)")
	flags.DurationVar(&cfg.budget, "budget", serveBudget, "the most time a decision takes, with -serve")
	flags.BoolVar(&cfg.serve, "serve", false, "serve until interrupted, and send nothing")
	if err := flags.Parse(args); err != nil {
		return config{}, err
	}
	var err error
	if i := slices.Index(known, *name); i >= 0 {
		cfg.frameworks = q.Frameworks[i : i+1]
	} else if *name != "" {
		err = fmt.Errorf("there is no -framework %q: use one of %s", *name, list)
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

package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/neap-go/neap/examples/internal/backend"
)

type config struct {
	frameworks []framework // one for -serve
	redis      string
	addr       string
	serve      bool
	budget     time.Duration // of a decision, with -serve
}

// parseFlags says on stderr what is wrong with the arguments.
func parseFlags(args []string, stderr io.Writer) (config, error) {
	var cfg config
	var name string
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&name, "framework", "",
		strings.Join(frameworkNames(), ", ")+" (default all in turn; with -serve "+frameworks[0].name+")")
	flags.StringVar(&cfg.redis, "redis", "", backend.FlagUsage)
	flags.StringVar(&cfg.addr, "addr", "",
		"address to listen on (default a free port of 127.0.0.1; with -serve 127.0.0.1:8080)")
	flags.DurationVar(&cfg.budget, "budget", serveBudget, "the most time a decision takes, with -serve")
	flags.BoolVar(&cfg.serve, "serve", false, "serve until interrupted, and send nothing")
	if err := flags.Parse(args); err != nil {
		return config{}, err
	}
	if flags.NArg() > 0 {
		return config{}, usage(stderr, "there are no arguments besides flags, but %q was given", flags.Arg(0))
	}

	cfg.frameworks = frameworks
	if name == "" && cfg.serve {
		name = frameworks[0].name
	}
	if name != "" {
		i := slices.Index(frameworkNames(), name)
		if i < 0 {
			return config{}, usage(stderr, "there is no -framework %q: use one of %s", name, strings.Join(frameworkNames(), ", "))
		}
		cfg.frameworks = frameworks[i : i+1]
	}
	switch {
	case cfg.addr != "":
	case cfg.serve:
		cfg.addr = "127.0.0.1:8080"
	default:
		cfg.addr = "127.0.0.1:0"
	}
	return cfg, nil
}

func usage(stderr io.Writer, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	fmt.Fprintln(stderr, "quickstart:", err)
	return err
}

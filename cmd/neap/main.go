// Command neap shows operators what the library keeps in Redis, changes it as the library's API does, and
// tells whether a Redis keeps what the library promises. docs/command.md has each command and what it prints.
package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9/logging"
)

// commands are what kong reads the command line into.
type commands struct {
	options

	Doctor     doctor     `cmd:"" help:"Tell whether this Redis keeps what neap promises."`
	Top        top        `cmd:"" help:"Show the subjects that the limits deny now or soon."`
	Peek       peek       `cmd:"" help:"Show how much of a limit a subject has taken."`
	Reset      reset      `cmd:"" help:"Forget what a subject has taken of a limit."`
	Ban        ban        `cmd:"" help:"Ban a subject for a while."`
	Unban      unban      `cmd:"" help:"Lift a subject's ban."`
	Script     scriptOf   `cmd:"" help:"Print the Lua that Redis runs for a limiter."`
	Lock       lockGroup  `cmd:"" help:"Show or end a lock, or run a command under one."`
	Limit      limitGroup `cmd:"" help:"Give one subject another limit for a while."`
	Guard      guardGroup `cmd:"" help:"Show, resolve or forget what an idempotency guard knows of a key, or list the keys in doubt."`
	Stock      stockGroup `cmd:"" help:"Show or restock an item."`
	Completion completion `cmd:"" help:"Print the completions of a shell."`
	Complete   complete   `cmd:"" hidden:"" name:"__complete" help:"Print what may come next on a command line."`
}

// options are those of every command.
type options struct {
	URL     string        `name:"url" placeholder:"URL" help:"The Redis: redis://user:password@host:port/db; rediss:// for TLS, with ?addr=host:port for more nodes of a cluster, with ?master_name=… for sentinels. Without it, the URL is that of REDIS_URL."`
	User    string        `placeholder:"NAME" help:"Log in as this user of Redis, not as the user in the URL. The password is that of REDISCLI_AUTH, if it is set."`
	Prefix  string        `default:"neap" help:"What the keys begin with (store.Options.Prefix)."`
	Secret  string        `name:"secret-file" type:"path" placeholder:"FILE" help:"A file with store.Options.SubjectSecret, if the service has one; CR and LF at its end are not part of the secret."`
	Timeout time.Duration `default:"5s" help:"The most time that one call to Redis takes."`
	JSON    bool          `name:"json" help:"Print JSON."`
}

// system is what a run reads from and writes to.
type system struct {
	in        io.Reader
	out, errs io.Writer
	env       func(name string) string
}

func main() {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the library's hints are for services
	// What is ignored stays so, such as the interrupt in the background of a script. Go tells that of no SIGTERM.
	ends := slices.DeleteFunc([]os.Signal{os.Interrupt, syscall.SIGTERM}, signal.Ignored)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a write that nobody reads is an error, and not the end of neap
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	code := run(ctx, os.Args[1:], system{os.Stdin, os.Stdout, os.Stderr, os.Getenv})
	stop()
	os.Exit(code)
}

// quit is the panic by which kong ends after it has printed help.
type quit int

// run is the command, and returns its exit status.
func run(ctx context.Context, args []string, sys system) (code int) {
	logging.Disable() // what go-redis would write comes back as an error
	out := &sink{Writer: sys.out}
	sys.out = out
	var cli commands
	a := &app{system: sys}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case quit:
			code = int(p)
		default:
			if !ofClient() {
				panic(p) // a bug of neap must not end with status 0
			}
			code = a.fail(errReply)
		}
	}()
	parser, err := kong.New(&cli, kong.Name("neap"),
		kong.Description("Look after what neap keeps in Redis. Exit status: "+exitStatuses+"."),
		kong.Writers(sys.out, sys.errs),
		kong.Exit(func(code int) { panic(quit(code)) }),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		return a.fail(err)
	}
	a.keepArguments(args)
	args, command, isRun := cutCommand(parser, args)
	parsed, err := parser.Parse(args)
	a.options, a.model, a.command, a.raw = cli.options, parser.Model, command, out.Writer
	if err != nil {
		a.JSON = slices.Contains(args, "--json") // kong has not set it
		if out.err != nil {                      // it could not print its help
			return a.fail(out.failed())
		}
		if isRun {
			a.JSON = false
			return a.fail(notRun(err))
		}
		return a.fail(usage(err))
	}
	defer a.close()
	parsed.BindTo(ctx, (*context.Context)(nil))
	a.keepOpen = context.AfterFunc(ctx, a.close) // a read of go-redis ends with its connection, not with its context
	err = parsed.Run(a)
	if own := (*failure)(nil); out.err != nil {
		err = out.failed()
	} else if err != nil && ctx.Err() != nil && !errors.As(err, &own) {
		err = errInterrupted
	}
	return a.fail(err)
}

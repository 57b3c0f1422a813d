package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// The exit statuses of lock run. All others are those of the command.
const (
	exitLost          = 123
	exitHeld          = 124
	exitNotRun        = 125 // as of timeout(1), as are the next two
	exitNotExecutable = 126
	exitNoCommand     = 127
	exitSignal        = 128 // and the number of the signal that ended the command
)

const (
	minRunLease = time.Second // a process takes longer to start and to end than a call to Redis
	maxRunLease = 24 * time.Hour
	// fenceVariable is what the command has the lock's fence in.
	fenceVariable = "NEAP_FENCE"
)

type lockRun struct {
	Name    string        `arg:"" help:"The locker's name."`
	Subject []string      `arg:"" optional:"" help:"What is locked, as 'neap lock show' takes it; 'all' if it is left out."`
	AsIs    bool          `name:"as-is" help:"Take SUBJECT exactly as it is written."`
	Wait    time.Duration `default:"0s" help:"How long to wait for a lock that another holds: up to 24h. 0 means not at all."`
	Lease   time.Duration `default:"30s" help:"How long the lock outlives this machine if it dies: 1s to 24h."`
	Grace   time.Duration `default:"0s" help:"How long after its SIGTERM the command gets a SIGKILL if the lock is lost: up to half of --lease. 0 means a third of --lease."`
	AtLeast time.Duration `name:"at-least" default:"0s" help:"Keep the lock for this long at least, also if the command ends earlier: up to 24h. Use more than the clocks of your machines differ."`
	Held    int           `short:"E" name:"conflict-exit-code" placeholder:"STATUS" default:"124" help:"The exit status if another holds the lock, so that the command does not run: 0 to 255."`
}

// cutCommand cuts the command off a command line of lock run: it follows the first --. Of another command line it returns
// all, where kong reads -- as the end of the flags.
func cutCommand(parser *kong.Kong, args []string) (own, command []string, isRun bool) {
	own = args
	if i := slices.Index(args, "--"); i >= 0 {
		own, command = args[:i], args[i+1:]
	}
	trace, err := kong.Trace(parser, own)
	if err != nil {
		return args, nil, false
	}
	if at := trace.Selected(); at != nil && at.Leaf() {
		isRun = at.Target.Type() == reflect.TypeFor[lockRun]()
	} else if i := slices.Index(own, "lock"); i >= 0 { // a flag before the words may be wrong, and kong stops there
		isRun = slices.Contains(own[i:], "run")
	}
	if !isRun {
		return args, nil, false
	}
	return own, command, true
}

// notRun is the error if the command was not run, for no fault of its own.
func notRun(err error) error { return &failure{exitNotRun, err} }

var errStopped = errors.New("interrupted: the command was not run")

// Run prints nothing: standard output is the command's, also with --json.
func (l *lockRun) Run(ctx context.Context, a *app) error {
	a.JSON = false
	words := a.command
	if err := l.check(words); err != nil {
		return notRun(err)
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return cannotRun(err)
	}
	var locker *lock.Locker
	var st *store.Store
	var key string
	err := answered(func() (err error) {
		locker, st, key, err = l.open(ctx, a)
		return err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return notRun(errStopped)
	case err != nil:
		return notRun(err)
	}
	if !a.keepOpen() {
		return notRun(errStopped)
	}
	lasting := context.WithoutCancel(ctx)
	defer func() { // what is left to give back
		within, cancel := a.within(lasting)
		defer cancel()
		_ = st.Drain(within)
	}()

	signals := make(chan os.Signal, 16)
	signal.Notify(signals, slices.DeleteFunc(slices.Clone(forwarded), signal.Ignored)...)
	defer signal.Stop(signals)
	held, since, err := l.acquire(ctx, lasting, signals, locker, key)
	switch {
	case errors.Is(err, lock.ErrHeld):
		return &failure{l.Held, errSilent}
	case err != nil:
		return notRun(err)
	}
	cmd := exec.CommandContext(lasting, words[0], words[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.in, a.raw, a.errs
	cmd.Env = append(os.Environ(), fenceVariable+"="+strconv.FormatInt(held.Fence(), 10))
	k := &keeper{lockRun: l, app: a, held: held, cmd: cmd, what: l.Name + " " + key}
	return k.run(lasting, since, signals)
}

// check finds the first fault of the command line, and sets what is left out.
func (l *lockRun) check(command []string) (err error) {
	switch {
	case len(command) == 0:
		err = errors.New("there is no command: write it after --, as in neap lock run nightly -- ./report")
	case l.Lease < minRunLease || l.Lease > maxRunLease:
		err = fmt.Errorf("--lease is %v: use %v to %v", l.Lease, minRunLease, maxRunLease)
	case l.Grace < 0 || l.Grace > l.Lease/2:
		err = fmt.Errorf("--grace is %v: use up to half of --lease, which is %v, or 0 for a third of it", l.Grace, l.Lease)
	case l.Wait < 0 || l.Wait > maxRunLease || l.Wait > 0 && l.Wait < time.Millisecond:
		err = fmt.Errorf("--wait is %v: use 1ms to %v, or 0 for not at all", l.Wait, maxRunLease)
	case l.AtLeast < 0 || l.AtLeast > maxRunLease:
		err = fmt.Errorf("--at-least is %v: use up to %v", l.AtLeast, maxRunLease)
	case l.Held < 0 || l.Held > 255:
		err = fmt.Errorf("--conflict-exit-code is %d: use 0 to 255", l.Held)
	}
	if l.Grace == 0 {
		l.Grace = l.Lease / 3
	}
	if len(l.Subject) == 0 {
		l.Subject = []string{"all"}
	}
	return err
}

// cannotRun is the error of a command that cannot be started, with the status that a shell has for it.
func cannotRun(err error) error {
	for _, missing := range []error{exec.ErrNotFound, fs.ErrNotExist, exec.ErrDot} {
		if errors.Is(err, missing) {
			return &failure{exitNoCommand, err}
		}
	}
	return &failure{exitNotExecutable, err}
}

// open connects. The owner tells operators which process holds the lock. It is random too, because an owner may take a
// lock that it has, and two machines may have the same name.
func (l *lockRun) open(ctx context.Context, a *app) (*lock.Locker, *store.Store, string, error) {
	key, err := (&whom{Subject: l.Subject, AsIs: l.AsIs}).text()
	if err != nil {
		return nil, nil, "", err
	}
	_, st, err := a.begin(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	locker, err := lock.New(st, l.Name, &lock.Options{Lease: l.Lease, NoRenewal: true, Wait: l.Wait})
	if err != nil {
		return nil, nil, "", err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	owner := fmt.Sprintf("%.36s.%d.%s", host, os.Getpid(), rand.Text()[:12])
	return locker.As(owner), st, key, nil
}

// acquire gets the lock, unless a signal comes first. It returns a time at which the lock had not yet been asked for.
func (l *lockRun) acquire(ctx, lasting context.Context, signals <-chan os.Signal, locker *lock.Locker, key string) (held *lock.Lock, since time.Time, err error) {
	waiting, stop := context.WithCancel(lasting)
	defer context.AfterFunc(ctx, stop)()
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = answered(func() (err error) {
			if held, err = l.ask(waiting, locker, key); err != nil {
				return err
			}
			since = time.Now() // the lease of a lock that was waited for began at an unknown time, so begin it anew
			return held.Extend(waiting, l.Lease)
		})
	}()
	stopped := false
	select {
	case <-signals:
		stopped = true
		stop()
		<-done
	case <-done:
	}
	if stopped = stopped || waiting.Err() != nil; stopped {
		err = errStopped
	}
	if err != nil && held != nil {
		_ = answered(func() error { return held.Release(lasting) })
	}
	return held, since, err
}

func (l *lockRun) ask(ctx context.Context, locker *lock.Locker, key string) (*lock.Lock, error) {
	if l.Wait == 0 {
		return locker.Try(ctx, key)
	}
	return locker.Acquire(ctx, key)
}

// answered makes an error of a panic of go-redis, which a senseless reply causes.
func answered(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if !ofClient() {
				panic(p)
			}
			err = errReply
		}
	}()
	return call()
}

// isLoss says whether an error is how a lock was lost, and not that Redis has not said.
func isLoss(err error) bool {
	var unanswered *script.Error
	return err != nil && !errors.As(err, &unanswered) && !errors.Is(err, errReply) && !errors.Is(err, context.Canceled)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/neap-go/neap/core/lock"
)

// keeper keeps the lock while the command runs, and ends the command if the lock is lost.
//
// It renews by itself, and not as core/lock does, because it must know when the lease may be over: a command that heeds
// no SIGTERM has to be gone by then.
type keeper struct {
	*lockRun

	app  *app
	held *lock.Lock
	cmd  *exec.Cmd
	what string // is locked

	lost   error          // why the command was ended
	spared bool           // the command had ended when the lock was kept for the rest of --at-least
	saying sync.WaitGroup // what sayf has not written yet
}

const (
	groupPoll = 10 * time.Millisecond // how often the keeper looks whether what the command began is gone
	patience  = 5 * time.Second       // with a standard error that nobody reads, when all else is done
)

var errAway = errors.New("Redis does not confirm it, and it may soon lapse")

// run is the command under the lock, and then the lock's release.
func (k *keeper) run(ctx context.Context, since time.Time, signals <-chan os.Signal) error {
	renewing, stop := context.WithCancel(ctx)
	defer stop()
	renewed, lost := make(chan time.Time), make(chan error, 1)
	code, err := 0, k.start()
	if err == nil {
		go k.renew(renewing, renewed, lost)
		code = k.watch(since, signals, renewed, lost)
	}
	stop()
	defer k.heard()
	return k.end(ctx, code, err)
}

// start starts the command.
func (k *keeper) start() error {
	runtime.LockOSThread() // Linux ends an orphan when the thread ends that made it
	group(k.cmd)
	if err := k.cmd.Start(); err != nil {
		takeBack(k.cmd) // the child got the terminal before it could not be executed
		return cannotRun(err)
	}
	return nil
}

// room is how long after it was asked for a lease lasts before the command must begin to end.
func (k *keeper) room(since time.Time) time.Duration {
	return time.Until(since.Add(k.Lease - k.Lease/20 - k.Grace)) // a part is left for clocks and for the kill itself
}

// watch waits for the command, and returns its exit status.
func (k *keeper) watch(since time.Time, signals <-chan os.Signal, renewed <-chan time.Time, lost <-chan error) (code int) {
	began := time.Now()
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = k.cmd.Wait()
	}()
	term := time.NewTimer(k.room(since))
	defer term.Stop()
	kill := time.NewTimer(0)
	kill.Stop()
	over := time.NewTimer(0) // what is left of --at-least
	over.Stop()
	poll := time.NewTicker(groupPoll)
	defer poll.Stop()
	poll.Stop()
	running, killed := true, false
	idle := func() bool { return !running && k.lost == nil } // it waits for the end of --at-least
	lose := func(why error) {
		if k.lost != nil || !running {
			return
		}
		k.lost = why
		refused := terminate(k.cmd)
		grace := max(0, min(k.Grace, k.room(since)+k.Grace)) // after a late SIGTERM, what is left of the lease
		kill.Reset(grace)
		poll.Reset(groupPoll)
		k.sayf("the lock of %s is lost: %v; its command gets a SIGTERM, and after %v a SIGKILL", k.what, why, grace.Round(time.Millisecond))
		k.judge(refused)
	}
	for {
		select {
		case <-exited:
			exited, running, code = nil, false, exitOf(k.cmd.ProcessState)
			takeBack(k.cmd)
			if left := k.AtLeast - time.Since(began); k.lost == nil {
				k.spared = left > 0
				over.Reset(left)
			}
			if killed {
				return code
			}
		case s := <-signals:
			if idle() {
				return code
			}
			k.judge(forward(k.cmd, s))
		case since = <-renewed:
			term.Reset(k.room(since))
		case why := <-lost:
			if lose(why); idle() {
				return code
			}
		case <-term.C:
			if lose(errAway); idle() {
				return code
			}
		case <-kill.C:
			destroy(k.cmd)
			if killed = true; !running {
				return code
			}
		case <-over.C:
			return code
		case <-poll.C:
			if k.lost != nil && !running && !remains(k.cmd) {
				return code
			}
		}
	}
}

// renew extends the lease after each third of it, and sooner after a call without an answer.
func (k *keeper) renew(ctx context.Context, renewed chan<- time.Time, lost chan<- error) {
	next := time.NewTimer(k.Lease / 3)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		since := time.Now()
		err := answered(func() error { return k.held.Extend(ctx, k.Lease) })
		pause := k.Lease / 3
		switch {
		case isLoss(err):
			lost <- err
			return
		case err != nil:
			pause = min(k.Lease/9, time.Second)
		default:
			select {
			case renewed <- since:
			case <-ctx.Done():
				return
			}
		}
		next.Reset(pause)
	}
}

// end gives the lock back, and returns how the run ended. A command that could not start has an error.
func (k *keeper) end(ctx context.Context, code int, err error) error {
	released := answered(func() error { return k.held.Release(ctx) })
	switch {
	case err != nil:
		return err
	case k.lost != nil:
		return &failure{exitLost, errSilent}
	case isLoss(released) && !k.spared:
		return &failure{exitLost, fmt.Errorf("the lock of %s was lost before the command ended: %w", k.what, released)}
	case released != nil && !isLoss(released):
		k.sayf("Redis does not confirm that the lock of %s is given back: it lapses within %v", k.what, k.Lease)
	}
	if code != 0 {
		return &failure{code, errSilent}
	}
	return nil
}

// judge says so if the system has refused a signal to the command, which is another user's then, such as that of sudo.
func (k *keeper) judge(err error) {
	if errors.Is(err, os.ErrPermission) {
		k.sayf("the command of %s gets no signal of neap: %v; run neap itself as the command's user, as by sudo neap lock run", k.what, err)
	}
}

// sayf says it on a goroutine of its own: nobody may read the standard error, and the command has to end all the same.
func (k *keeper) sayf(format string, args ...any) {
	text := "neap: " + plain(k.app.message(fmt.Errorf(format, args...)))
	k.saying.Go(func() { fmt.Fprintln(k.app.errs, text) })
}

// heard waits until all is said, or patience is over.
func (k *keeper) heard() {
	said := make(chan struct{})
	go func() {
		defer close(said)
		k.saying.Wait()
	}()
	select {
	case <-said:
	case <-time.After(patience):
	}
}

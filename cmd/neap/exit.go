package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
)

// The exit statuses.
const (
	exitFound   = 0
	exitNot     = 1
	exitUsage   = 2
	exitAway    = 3
	exitRefused = 4
	exitLeft    = 5
	exitOutput  = 6
)

const exitStatuses = "0 found, or done; 1 not found, or of doctor: a promise does not hold; 2 the command line is wrong; " +
	"3 Redis does not answer, or for top one of its servers, or its reply makes no sense, or you interrupted, and a change may have happened; 4 Redis refuses; 5 nothing was changed: you did not say yes, or what is there does not allow it; " +
	"6 the output could not be written, and a change that you asked for may have happened. Those of lock run are the command's, or 123 the lock was lost; 124 another has it; 125 the command was not run; 126 and 127 it cannot be, or is not there"

// failure is an error with an exit status of its own.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func usage(err error) error { return &failure{exitUsage, err} }

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

// errSilent is an error that the output has shown already.
var errSilent = errors.New("told already")

// errInterrupted is the error after a Ctrl-C, except at a question.
var errInterrupted = &failure{exitAway, errors.New("interrupted: if you asked for a change, it may have happened; look again")}

// errReply is the error after a reply that makes go-redis panic: its length is beyond all memory, or an element has
// another type than the command promises.
var errReply = &failure{exitAway, errors.New("the server's reply makes no sense to go-redis: check that the URL is that of a Redis; if you asked for a change, it may have happened")}

// ofClient says, in a deferred function, whether the panic under way began in go-redis. Others may have passed it on.
func ofClient() (is bool) {
	callers := make([]uintptr, 1000)
	frames := runtime.CallersFrames(callers[:runtime.Callers(0, callers)])
	panics := false
	for {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			panics = true
		case panics && !strings.HasPrefix(frame.Function, "runtime."):
			is, panics = strings.HasPrefix(frame.Function, "github.com/redis/go-redis/"), false
		}
		if !more {
			return is
		}
	}
}

// not is the error of a command that has already shown that there is nothing.
var not = &failure{exitNot, errSilent}

// statuses are the exit statuses of the library's errors, the first that matches.
var statuses = []struct {
	err  error
	code int
}{
	{limit.ErrSubject, exitUsage},
	{limit.ErrCost, exitUsage},
	{inflight.ErrSubject, exitUsage},
	{lock.ErrKey, exitUsage},
	{idempotency.ErrKey, exitUsage},
	{stock.ErrItem, exitUsage},
	{stock.ErrID, exitUsage},
	{stock.ErrUnits, exitUsage},
	{stock.ErrUnknown, exitNot},
	{stock.ErrQuantity, exitLeft},
	{stock.ErrDisagrees, exitLeft},
	{idempotency.ErrInFlight, exitLeft},
	{idempotency.ErrNotInDoubt, exitLeft},
	{script.ErrConfiguration, exitRefused},
	{script.ErrFailed, exitRefused},
	{script.ErrNotExecuted, exitAway},
	{script.ErrMaybeExecuted, exitAway},
	{context.DeadlineExceeded, exitAway},
}

// refusedWrites are the codes with which Redis refuses every write until somebody changes something.
var refusedWrites = []string{"OOM", "NOREPLICAS", "READONLY", "MISCONF"}

// status is the exit status of an error.
func status(err error) int {
	var own *failure
	var reply redis.Error
	var failed *script.Error
	var network net.Error
	switch {
	case err == nil:
		return exitFound
	case errors.As(err, &own):
		return own.code
	case errors.As(err, &failed) && slices.Contains(refusedWrites, failed.Code()): // before its class, which is that nothing ran
		return exitRefused
	}
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			return s.code
		}
	}
	switch {
	case errors.As(err, &network), errors.Is(err, redis.Nil): // of a sentinel that does not know the master
		return exitAway
	case errors.As(err, &reply):
		return exitRefused
	}
	return exitAway // what go-redis says of a connection has no type
}

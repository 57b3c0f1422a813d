package script

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Every error of [Runner.Run] that is not the caller's own context error is
// an [*Error] and matches exactly one of these.
var (
	// ErrNotExecuted: nothing ran, so the call may be made again.
	ErrNotExecuted = errors.New("script: not executed")
	// ErrMaybeExecuted: the reply was lost or late. The script ran once or
	// not at all; it was not sent again.
	ErrMaybeExecuted = errors.New("script: maybe executed")
	// ErrConfiguration: nothing ran, and nothing will until the credentials,
	// the ACL, the client or the keys are changed.
	ErrConfiguration = errors.New("script: refused by configuration")
	// ErrFailed: the script raised an error, or answered what it never should.
	ErrFailed = errors.New("script: failed")
)

var (
	errBudget   = errors.New("no answer within the budget")
	errNoKeys   = errors.New("a script needs at least one key")
	errManyTags = errors.New("the keys do not share one {hash tag}, so a cluster could not run the script")
)

// Error tells what became of a call. Its text may hold key names that Redis
// put there; it is for operators, never for a response.
type Error struct {
	// Script is the file's name.
	Script string
	// Class is one of the four sentinels above.
	Class error
	// Err is the cause.
	Err error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s: %v", e.Class, e.Script, e.Err)
}

// Unwrap makes both the class and the cause visible to errors.Is.
func (e *Error) Unwrap() []error { return []error{e.Class, e.Err} }

// refusals are the replies with which Redis refuses a command before it runs,
// or an OOM at a script's first write, which is the only one that it refuses.
var refusals = []struct {
	prefix string
	class  error
	again  bool
}{
	{"NOSCRIPT", ErrNotExecuted, true},
	{"MOVED", ErrNotExecuted, true},
	{"ASK", ErrNotExecuted, true},
	{"TRYAGAIN", ErrNotExecuted, true},
	{"CLUSTERDOWN", ErrNotExecuted, true},
	{"LOADING", ErrNotExecuted, true},
	{"MASTERDOWN", ErrNotExecuted, true},
	{"READONLY", ErrNotExecuted, true},
	{"BUSY", ErrNotExecuted, true},
	{"OOM", ErrNotExecuted, false},
	{"ERR max number of clients", ErrNotExecuted, true},
	{"NOAUTH", ErrConfiguration, false},
	{"WRONGPASS", ErrConfiguration, false},
	{"NOPERM", ErrConfiguration, false},
	{"CROSSSLOT", ErrConfiguration, false},
}

// classify tells what an error of go-redis means for the script, and whether
// another attempt may do better.
func classify(err error) (class error, again bool) {
	if reply, ok := errors.AsType[redis.Error](err); ok {
		text := reply.Error()
		for _, r := range refusals {
			if strings.HasPrefix(text, r.prefix) {
				return r.class, r.again
			}
		}
		return ErrFailed, false
	}
	if errors.Is(err, redis.ErrClosed) {
		return ErrConfiguration, false
	}
	if errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) {
		return ErrNotExecuted, true
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return ErrNotExecuted, true
	}
	return ErrMaybeExecuted, false
}

// place puts the script's file in the place of Redis' name for it:
// "user_script:12" becomes "limit_window.lua:12".
func (s *Script) place(err error) error {
	text := err.Error()
	if strings.Contains(text, "user_script:") {
		return located{strings.ReplaceAll(text, "user_script:", s.name+":"), err}
	}
	return err
}

type located struct {
	text string
	err  error
}

func (l located) Error() string { return l.text }
func (l located) Unwrap() error { return l.err }

func isDeadline(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

package script

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/background"
)

// Every error of [Runner.Run], except that of the caller's own context, is an [*Error] and
// matches exactly one of these.
var (
	// ErrNotExecuted reports that nothing ran, so the call may be made again. Redis said
	// so, or the command never reached a connection, or a store did not send it.
	ErrNotExecuted = errors.New("script: not executed")
	// ErrMaybeExecuted reports that the reply was lost or late. The script ran once or
	// not at all. It was not sent again.
	ErrMaybeExecuted = errors.New("script: maybe executed")
	// ErrConfiguration reports that the call was refused, and that it will be refused
	// until the credentials, the ACL, the client or the keys are changed. Nothing ran,
	// with one exception: if the ACL does not allow a command, a key or a channel that
	// the script uses, Redis has run the script up to there, and what it wrote remains.
	ErrConfiguration = errors.New("script: refused by configuration")
	// ErrFailed reports that the script raised an error, or answered what it never
	// should.
	ErrFailed = errors.New("script: failed")
)

var (
	errBudget   = errors.New("no answer within the budget")
	errUnsent   = errors.New("not sent within the budget")
	errRunner   = errors.New("a nil or zero Runner: make one with NewRunner, and check its error first")
	errGone     = errors.New("a hook of the client ended its goroutine (runtime.Goexit)")
	errSpent    = errors.New("the Call was sent before: a Sender sends it once")
	errCall     = errors.New("a nil or zero Call: Runner.Run makes it")
	errScript   = errors.New("a nil or zero Script: make one with New")
	errNoKeys   = errors.New("a script needs at least one key")
	errManyTags = errors.New("the keys do not share one {hash tag}, so a cluster could not run the script")
)

// Error says how a call ended. Its text may contain keys that Redis put there, so show it
// to operators only, never in a response.
type Error struct {
	// Script is the name of the script's file.
	Script string
	// Class is one of the four sentinels above.
	Class error
	// Err is the cause.
	Err error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s: %v", e.Class, e.Script, e.Err)
}

// Code is the code that the reply of Redis begins with, such as OOM or NOPERM, also if it is
// the reply to a command within the script. It is empty if Redis did not reply, or if the
// reply has no code.
func (e *Error) Code() string {
	reply, is := errors.AsType[redis.Error](e.Err)
	if !is {
		return ""
	}
	return code.FindString(innermost(reply.Error()))
}

// Unwrap makes both the class and the cause visible to errors.Is.
func (e *Error) Unwrap() []error { return []error{e.Class, e.Err} }

// refusals are the replies with which Redis refuses a call. They are recognized by the
// server's own words, because a script may return an error of its own with the same code.
// Refusals with inside are raised inside a script, at its first write, because Redis lets
// a script finish once it has written. Only the ACL may refuse a later command.
var refusals = []struct {
	reply  *regexp.Regexp
	class  error
	again  bool
	inside bool
}{
	{reply: regexp.MustCompile(`^NOSCRIPT No matching script`), class: ErrNotExecuted, again: true},
	{reply: regexp.MustCompile(`^(MOVED|ASK) \d+ `), class: ErrNotExecuted, again: true},
	{reply: regexp.MustCompile(`^TRYAGAIN Multiple keys`), class: ErrNotExecuted, again: true},
	{reply: regexp.MustCompile(`^CLUSTERDOWN (The cluster|Hash slot)`), class: ErrNotExecuted, again: true},
	{reply: regexp.MustCompile(`^LOADING \w+ is loading`), class: ErrNotExecuted, again: true},
	{reply: regexp.MustCompile(`^MASTERDOWN Link with`), class: ErrNotExecuted, again: true},
	{reply: regexp.MustCompile(`^BUSY \w+ is busy running`), class: ErrNotExecuted, again: true},
	{reply: regexp.MustCompile(`^ERR max number of clients`), class: ErrNotExecuted, again: true},
	{reply: regexp.MustCompile(`^READONLY You can't write`), class: ErrNotExecuted, again: true, inside: true},
	{reply: regexp.MustCompile(`^NOREPLICAS Not enough`), class: ErrNotExecuted, again: true, inside: true},
	{reply: regexp.MustCompile(`^OOM command not allowed`), class: ErrNotExecuted, inside: true},
	{reply: regexp.MustCompile(`^MISCONF `), class: ErrNotExecuted, inside: true},
	{reply: regexp.MustCompile(`^(NOAUTH|WRONGPASS|NOPERM) `), class: ErrConfiguration},
	{reply: regexp.MustCompile(`^CROSSSLOT Keys`), class: ErrConfiguration},
	// The first is from Redis up to 7.0, the second from later versions and Valkey.
	{reply: regexp.MustCompile(`^(ERR )?The user executing the script can't `), class: ErrConfiguration, inside: true},
	{reply: regexp.MustCompile(`^ERR ACL failure in script: `), class: ErrConfiguration, inside: true},
}

// wrapped matches how Redis before 7.0 reports an error of a command in a script. If the
// script returns the error, the first part is missing.
var wrapped = regexp.MustCompile(`^(?:ERR Error running script .*: )?@user_script: \d+: -?(.*)`)

// innermost is the reply to the command that failed, wherever that was.
func innermost(text string) string {
	if m := wrapped.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return text
}

var code = regexp.MustCompile(`^[A-Z]+\b`)

// classify returns the class of an error of go-redis, and whether another attempt may
// succeed. written says that the command had reached a connection.
func classify(err error, written bool) (class error, again bool) {
	if reply, ok := errors.AsType[redis.Error](err); ok && !errors.Is(err, redis.Nil) {
		return classifyReply(reply.Error())
	}
	_, panicked := errors.AsType[*background.Panic](err)
	switch {
	case errors.Is(err, redis.ErrClosed), strings.HasPrefix(err.Error(), "redis: can't marshal"):
		return ErrConfiguration, false
	case !written:
		return ErrNotExecuted, !panicked && !isDeadline(err)
	}
	return ErrMaybeExecuted, false
}

func classifyReply(text string) (class error, again bool) {
	inside := strings.Contains(text, "user_script")
	text = innermost(text)
	for _, r := range refusals {
		if r.reply.MatchString(text) && (r.inside || !inside) {
			return r.class, r.again
		}
	}
	return ErrFailed, false
}

// place replaces Redis' name for the script by the name of its file: "user_script:12"
// becomes "limit_window.lua:12".
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

// isCrowded reports whether a command was not sent because other commands of this process
// took all the room of the client.
func isCrowded(err error) bool {
	for _, full := range []error{redis.ErrPoolTimeout, redis.ErrPoolExhausted, redis.ErrAutoPipelineQueueFull, redis.ErrAutoPipelineTimeout} {
		if errors.Is(err, full) {
			return true
		}
	}
	return false
}

// isDeadline reports whether the call's own context ended.
func isDeadline(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

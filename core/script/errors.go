package script

import (
	"bytes"
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
	// ErrMaybeExecuted reports that the reply was lost or late, or that it is neither the
	// script's nor a refusal that package script knows: a proxy may give such a reply in
	// place of the script's. The script ran once or not at all. It was not sent again.
	ErrMaybeExecuted = errors.New("script: maybe executed")
	// ErrConfiguration reports that the call was refused, and that it will be refused
	// until the credentials, the ACL, the client or the keys are changed. Nothing ran,
	// with one exception: if the ACL does not allow a command, a key or a channel that
	// the script uses, Redis has run the script up to there, and what it wrote remains.
	ErrConfiguration = errors.New("script: refused by configuration")
	// ErrFailed reports that the script raised an error, returned one whose text stands in
	// it, or answered what it never should. See [Runner.Run].
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

// Answered reports whether the error is an answer: of the script, or of a server that
// refused the call. It is false if there was no reply, and for a reply that package script
// does not know, because a proxy may have given it in place of a server.
func (e *Error) Answered() bool {
	_, is := errors.AsType[redis.Error](e.Err)
	_, unknown := errors.AsType[unknownReply](e.Err)
	return is && !unknown && !errors.Is(e.Err, redis.Nil) // go-redis returns an error that wraps redis.Nil if a sentinel knows no master
}

// unknownReply is a reply that is neither the script's nor a known refusal.
type unknownReply struct{ error }

func (u unknownReply) Error() string {
	return "an unknown reply, perhaps of a proxy: " + u.error.Error()
}
func (u unknownReply) Unwrap() error { return u.error }

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
	{reply: regexp.MustCompile(`^DENIED .*protected mode`), class: ErrConfiguration},
	{reply: regexp.MustCompile(`^(ERR )?([Uu]nknown|unsupported) command`), class: ErrConfiguration}, // EVALSHA or EVAL is disabled, or renamed
	{reply: regexp.MustCompile(`^(ERR )?wrong number of arguments for`), class: ErrConfiguration},
	// These answer what a client sends before its first call.
	{reply: regexp.MustCompile(`^ERR (DB index is out of range|invalid DB index|SELECT is not allowed)`), class: ErrConfiguration},
	{reply: regexp.MustCompile(`^ERR (AUTH <password> called|Client sent AUTH|invalid password)`), class: ErrConfiguration},
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
// succeed. written says that the command had reached a connection. known is false for a
// reply that is neither the script's nor a refusal.
func (s *Script) classify(err error, written bool) (class error, again, known bool) {
	if reply, ok := errors.AsType[redis.Error](err); ok && !errors.Is(err, redis.Nil) {
		return s.classifyReply(reply, written)
	}
	_, panicked := errors.AsType[*background.Panic](err)
	switch {
	case errors.Is(err, redis.ErrClosed), strings.HasPrefix(err.Error(), "redis: can't marshal"):
		return ErrConfiguration, false, true
	case !written:
		return ErrNotExecuted, !panicked && !isDeadline(err), true
	}
	return ErrMaybeExecuted, false, true
}

func (s *Script) classifyReply(reply redis.Error, written bool) (class error, again, known bool) {
	switch reply {
	case errUnmerged: // the call is made again by itself
		return ErrNotExecuted, true, true
	case errReplies:
		return ErrFailed, false, true
	}
	text := reply.Error()
	inside := strings.Contains(text, "user_script")
	innermost := innermost(text)
	for _, r := range refusals {
		if r.reply.MatchString(innermost) && (r.inside || !inside) {
			return r.class, r.again, true
		}
	}
	switch {
	case inside, s.owns(text):
		return ErrFailed, false, true
	case !written: // it answers what the client sends before its first call
		return ErrNotExecuted, true, false
	}
	return ErrMaybeExecuted, false, false
}

// ran matches the replies that only a script gives which ran, beside those that name it.
var ran = regexp.MustCompile(`^(ERR )?Error (running|compiling) script|^WRONGTYPE Operation against`)

// IsOwn reports whether an error with that text, as a script returns it, is the script's
// own: whether a call that ends with it is [ErrFailed]. Package scripttest uses it.
func (s *Script) IsOwn(text string) bool {
	s.made()
	return strings.Contains(text, "user_script") || s.owns(text)
}

// owns reports whether an error is the script's own, although it may not name it.
func (s *Script) owns(text string) bool {
	return ran.MatchString(text) || s != nil && (returns(s.source, text) || s.merging != nil && returns(s.merging.Script.source, text))
}

// returns reports whether the text of an error stands in the source of a script, as a
// whole: redis.error_reply('text') or {err = 'text'}. Redis adds the code ERR to a text of
// one word. So the reply of a proxy is taken for the script's only if it is worded exactly
// like what the script returns.
func returns(source []byte, text string) bool {
	for _, literal := range []string{text, strings.TrimPrefix(text, "ERR ")} {
		for _, quote := range []string{"'", `"`} {
			for rest, end := source, []byte(literal+quote); literal != ""; {
				before, after, found := bytes.Cut(rest, end)
				if !found {
					break
				}
				before, opened := bytes.CutSuffix(bytes.TrimSuffix(before, []byte("-")), []byte(quote))
				if opened && errorValue.Match(before[max(0, len(before)-40):]) {
					return true
				}
				rest = after
			}
		}
	}
	return false
}

// errorValue matches what stands before the text of an error.
var errorValue = regexp.MustCompile(`(\berror_reply\s*\(?|\berr\s*=)\s*$`)

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

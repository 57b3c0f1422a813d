package wire

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/background"
)

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

// Innermost returns the reply to the command that failed, wherever that was.
func Innermost(text string) string {
	if m := wrapped.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return text
}

// Verdict is what an error of go-redis means for a call.
type Verdict struct {
	Class   error // one of the four classes
	Again   bool  // another attempt may succeed
	Unknown bool  // the error is a reply that is neither the script's nor a refusal
}

// Classify judges an error of go-redis. written says that the command had reached a
// connection. s may be nil.
func (s *Script) Classify(err error, written bool) Verdict {
	if reply, ok := errors.AsType[redis.Error](err); ok && !errors.Is(err, redis.Nil) {
		return s.classifyReply(reply, written)
	}
	_, panicked := errors.AsType[*background.PanicError](err)
	switch {
	case errors.Is(err, redis.ErrClosed), IsUnwritable(err):
		return Verdict{Class: ErrConfiguration}
	case !written:
		return Verdict{Class: ErrNotExecuted, Again: !panicked && !errors.Is(err, context.DeadlineExceeded)}
	}
	return Verdict{Class: ErrMaybeExecuted}
}

// IsUnwritable reports whether an error of go-redis says that it cannot write an argument.
func IsUnwritable(err error) bool { return strings.HasPrefix(err.Error(), "redis: can't marshal") }

func (s *Script) classifyReply(reply redis.Error, written bool) Verdict {
	switch reply {
	case ErrUnmerged: // the call is made again by itself
		return Verdict{Class: ErrNotExecuted, Again: true}
	case errNotGiven:
		return Verdict{Class: ErrMaybeExecuted, Unknown: true}
	}
	text := reply.Error()
	inside := strings.Contains(text, "user_script")
	innermost := Innermost(text)
	for _, r := range refusals {
		if r.reply.MatchString(innermost) && (r.inside || !inside) {
			return Verdict{Class: r.class, Again: r.again}
		}
	}
	switch {
	case inside, s.owns(text):
		return Verdict{Class: ErrFailed}
	case !written: // it answers what the client sends before its first call
		return Verdict{Class: ErrNotExecuted, Again: true, Unknown: true}
	}
	return Verdict{Class: ErrMaybeExecuted, Unknown: true}
}

// refusedAtFirst reports whether Redis refused the first write of a script for a reason that
// another script would meet too, such as full memory. Redis refuses only the first for such
// a reason, so nothing was done.
func (s *Script) refusedAtFirst(err error) bool {
	return strings.Contains(err.Error(), "user_script") && s.Classify(err, true).Class == ErrNotExecuted
}

// ran matches the replies that only a script gives which ran, beside those that name it.
var ran = regexp.MustCompile(`^(ERR )?Error (running|compiling) script|^WRONGTYPE Operation against`)

// IsOwn reports whether an error with that text, as a script returns it, is the script's
// own: whether a call that ends with it is [ErrFailed].
func (s *Script) IsOwn(text string) bool {
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

// IsCrowded reports whether a command was not sent because other commands of this process
// took all the room of the client.
func IsCrowded(err error) bool {
	for _, full := range []error{redis.ErrPoolTimeout, redis.ErrPoolExhausted, redis.ErrAutoPipelineQueueFull, redis.ErrAutoPipelineTimeout} {
		if errors.Is(err, full) {
			return true
		}
	}
	return false
}

// UnknownReplyError is the cause of an error if a reply is neither the script's nor a known
// refusal.
type UnknownReplyError struct{ Reply error }

func (u UnknownReplyError) Error() string {
	return "an unknown reply, perhaps of a proxy: " + u.Reply.Error()
}

func (u UnknownReplyError) Unwrap() error { return u.Reply }

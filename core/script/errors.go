package script

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/wire"
)

// Every error of [Runner.Run], except that of the caller's own context, is an [*Error] and
// matches exactly one of these.
var (
	// ErrNotExecuted reports that nothing ran, so the call may be made again. Redis said
	// so, or the command never reached a connection, or a store did not send it.
	ErrNotExecuted = wire.ErrNotExecuted
	// ErrMaybeExecuted reports that the reply was lost or late, or that it is neither the
	// script's (see [Script.Replies]) nor a refusal that package script knows: a proxy may
	// give such a reply in place of the script's. The script ran once or not at all. It
	// was not sent again.
	ErrMaybeExecuted = wire.ErrMaybeExecuted
	// ErrConfiguration reports that the call was refused, and that it will be refused
	// until the credentials, the ACL, the client or the keys are changed. Nothing ran,
	// with one exception: if the ACL does not allow a command, a key or a channel that
	// the script uses, Redis has run the script up to there, and what it wrote remains.
	ErrConfiguration = wire.ErrConfiguration
	// ErrFailed reports that the script raised an error, or returned one whose text stands
	// in it: see [Runner.Run]. It is also the class of a reply that [Script.Decode] cannot
	// use.
	ErrFailed = wire.ErrFailed
)

var (
	errRunner = errors.New("a nil or zero Runner: make one with NewRunner, and check its error first")
	errScript = errors.New("a nil or zero Script: make one with New")
)

// Error says how a call ended. Its text may contain keys that Redis put there, so show it
// to operators only, never in a response.
type Error struct {
	// Script is the name of the script: that of its file, or of what it was made of.
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
	return code.FindString(wire.Innermost(reply.Error()))
}

var code = regexp.MustCompile(`^[A-Z]+\b`)

// Answered reports whether the error is an answer: of the script, or of a server that
// refused the call. It is false if there was no reply, and for a reply that package script
// does not know, because a proxy may have given it in place of a server.
func (e *Error) Answered() bool {
	_, is := errors.AsType[redis.Error](e.Err)
	_, unknown := errors.AsType[wire.UnknownReplyError](e.Err)
	return is && !unknown && !errors.Is(e.Err, redis.Nil) // go-redis returns an error that wraps redis.Nil if a sentinel knows no master
}

// Unwrap makes both the class and the cause visible to errors.Is.
func (e *Error) Unwrap() []error { return []error{e.Class, e.Err} }

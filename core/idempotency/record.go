package idempotency

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/neap-go/neap/core/internal/reply"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

var (
	beginScript    = script.FromFS(lua.FS, "guard_begin.lua").Batched().Replies(reply.From(0), isRecord)
	renewScript    = script.FromFS(lua.FS, "guard_renew.lua").Batched().Essential().Replies(reply.OneOf(1, finished, anothers, absent), nil)
	completeScript = script.FromFS(lua.FS, "guard_complete.lua").Batched().Essential().Replies(reply.OneOf(1, flushed, anothers), nil)
	abandonScript  = script.FromFS(lua.FS, "guard_abandon.lua").Batched().Essential().Replies(reply.OneOf(1, finished, anothers, absent), nil)
	resolveScript  = script.FromFS(lua.FS, "guard_resolve.lua").Batched().Essential().Replies(reply.OneOf(1, 0, running, absent), nil)
	forgetScript   = script.FromFS(lua.FS, "guard_forget.lua").Batched().Replies(reply.OneOf(0, 1), nil)
	inspectScript  = script.FromFS(lua.FS, "guard_inspect.lua").Batched().Replies(nil, isInspected)

	errRecord = errors.New("the key holds no record of neap")
)

// These are the replies of the scripts that mean no, or yes with a reservation.
const (
	finished = 0  // renew, abandon: the work is done
	running  = -1 // resolve
	anothers = -1 // renew, complete, abandon: the run is another owner's, or over
	absent   = -2 // there is no record
	flushed  = 2  // complete: Redis has noted it, and there was no record
)

// noPrint stands for a fingerprint that was not given.
const noPrint = "-"

// record is what Redis stores for a key, as guard_begin.lua writes it.
type record struct {
	state   state
	fence   int64
	attempt int64
	owner   string
	print   string
	result  string
}

// parse reads a record. ok is false for one that neap has not written.
func parse(text string) (r record, ok bool) {
	line, result, _ := strings.Cut(text, "\n")
	word := func() (w string) {
		w, line, _ = strings.Cut(line, " ")
		return w
	}
	r.state = state(word())
	fence, err1 := strconv.ParseInt(word(), 10, 64)
	attempt, err2 := strconv.ParseInt(word(), 10, 64)
	_, _ = word(), word() // these two are about the lease
	r.fence, r.attempt, r.owner, r.print, r.result = fence, attempt, word(), line, result
	_, ok = states[r.state]
	return r, ok && err1 == nil && err2 == nil
}

// isRecord reports whether a reply is a line of seven words, and what follows it.
func isRecord(reply any) bool {
	text, _ := reply.(string)
	line, _, ok := strings.Cut(text, "\n")
	return ok && strings.Count(line, " ") == 6
}

// isInspected reports whether a reply is that of guard_inspect.lua.
func isInspected(reply any) bool {
	parts, _ := reply.([]any)
	if len(parts) != 4 {
		return reply == nil
	}
	line, _ := parts[0].(string)
	_, ok1 := parts[1].(int64)
	_, ok2 := parts[2].(int64)
	_, ok3 := parts[3].(int64)
	return isRecord(line+"\n") && ok1 && ok2 && ok3
}

// broken returns the error for a record that neap has not written.
func broken(sc *script.Script) error {
	return &script.Error{Script: sc.Name(), Class: script.ErrFailed, Err: errRecord}
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func number(n int64) string { return strconv.FormatInt(n, 10) }

package idempotency

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

var (
	beginScript    = script.FromFS(lua.FS, "guard_begin.lua").Batched()
	renewScript    = script.FromFS(lua.FS, "guard_renew.lua").Batched().Essential()
	completeScript = script.FromFS(lua.FS, "guard_complete.lua").Batched().Essential()
	abandonScript  = script.FromFS(lua.FS, "guard_abandon.lua").Batched().Essential()
	resolveScript  = script.FromFS(lua.FS, "guard_resolve.lua").Batched().Essential()
	forgetScript   = script.FromFS(lua.FS, "guard_forget.lua").Batched()
	inspectScript  = script.FromFS(lua.FS, "guard_inspect.lua").Batched()

	errReply = errors.New("the reply is not about a record: is the client really connected to Redis?")
)

// These are the replies of the scripts that mean no, or yes with a reservation.
const (
	finished = 0  // renew, abandon: the work is done
	running  = -1 // resolve
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

func parse(text string) (r record, ok bool) {
	line, result, ok := strings.Cut(text, "\n")
	if !ok || strings.Count(line, " ") != 6 {
		return record{}, false
	}
	word := func() (w string) {
		w, line, _ = strings.Cut(line, " ")
		return w
	}
	r.state = state(word())
	fence, err1 := strconv.ParseInt(word(), 10, 64)
	attempt, err2 := strconv.ParseInt(word(), 10, 64)
	if err1 != nil || err2 != nil {
		return record{}, false
	}
	_, _ = word(), word() // these two are about the lease
	r.fence, r.attempt, r.owner, r.print, r.result = fence, attempt, word(), line, result
	return r, true
}

// broken returns the error for a reply that no script of neap gives.
func broken(sc *script.Script) error {
	return &script.Error{Script: sc.Name(), Class: script.ErrFailed, Err: errReply}
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func number(n int64) string { return strconv.FormatInt(n, 10) }

package store

import (
	"errors"
	"log/slog"
	"regexp"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
)

// refusalPause is the least time between two log lines about refusals by one server.
const refusalPause = time.Minute

// unknownCommand matches the reply of a server on which a command that a script uses is
// renamed or disabled.
var unknownCommand = regexp.MustCompile(`^ERR Unknown Redis command`)

// refused logs that the server refuses calls. A limit then decides without Redis, and its
// caller has no error from which to see that. What a script raises by itself is not logged.
func (n *node) refused(err error) {
	failure, _ := errors.AsType[*script.Error](err)
	reply, is := errors.AsType[redis.Error](err)
	if !is || !answered(err) || failure == nil || failure.Class == script.ErrFailed && !unknownCommand.MatchString(reply.Error()) {
		return
	}
	now, before := n.now(), n.refusal.Load()
	if before != 0 && now-before < int64(refusalPause) || !n.refusal.CompareAndSwap(before, now) {
		return
	}
	n.log(slog.LevelWarn, "neap: Redis refuses calls; neap doctor says why", "class", classOf(err), "code", failure.Code())
}

package lock

import (
	"context"
	"strconv"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/reply"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

var (
	acquireScript = script.FromFS(lua.FS, "lock_acquire.lua").Batched().Replies(isNotZero, nil)
	extendScript  = script.FromFS(lua.FS, "lock_extend.lua").Batched().Essential().Replies(reply.From(absent), nil)
	releaseScript = script.FromFS(lua.FS, "lock_release.lua").Batched().Essential().Replies(reply.From(ended), nil)
	leaveScript   = script.FromFS(lua.FS, "lock_leave.lua").Batched().Replies(reply.OneOf(0, 1), nil)
	forceScript   = script.FromFS(lua.FS, "lock_force.lua").Batched().Essential().Replies(reply.OneOf(0, 1), nil)
	inspectScript = script.FromFS(lua.FS, "lock_inspect.lua").Batched().Replies(nil, isState)
	startScript   = script.FromFS(lua.FS, "once_start.lua").Batched().Replies(reply.Any, isLate)
	endScript     = script.FromFS(lua.FS, "once_end.lua").Batched().Essential().Replies(reply.OneOf(1, taken, absent, ended), nil)
)

func isNotZero(n int64) bool { return n != 0 }

func isLate(reply any) bool { return reply == "late" }

// These are the replies of the scripts if a hold is not held.
const (
	lapsed = 0
	taken  = -1
	absent = -2
	ended  = -3 // by an earlier call, because only this process knows the hold
)

// ask runs a script whose reply is a number. Each of these scripts can safely run twice.
func (s *shared) ask(
	ctx context.Context, sc *script.Script, key string, args ...any,
) (n int64, asked time.Time, in ask.Doubt, err error) {
	reply, asked, in, err := s.asker.Ask(ctx, sc, key, args...)
	if err != nil {
		return 0, asked, in, err
	}
	n, is := reply.(int64)
	if !is {
		return 0, asked, in, ErrLate
	}
	return n, asked, in, nil
}

// ending ends a hold; doubted says that an earlier call may have ended it.
type ending func(ctx context.Context) (n int64, doubted bool, err error)

func (b *bid) ending(s *shared, fence int64, how conclusion) ending {
	if b.run != nil && how == failed {
		how = b.run.without()
	}
	return func(ctx context.Context) (int64, bool, error) {
		sc, args := releaseScript, []any{b.hold, fence}
		if b.run != nil {
			sc, args = endScript, append(args, string(how))
		}
		n, _, in, err := s.ask(ctx, sc, b.key, args...)
		return n, in.Calls > 0, err
	}
}

// verdict returns what a script's reply says about a hold: nil, or how it was lost.
func verdict(n int64, doubted bool) error {
	switch {
	case n > 0 || n == ended && doubted:
		return nil
	case n == lapsed:
		return ErrExpired
	case n == taken:
		return ErrTakenByOther
	}
	return ErrLost
}

// takeBack repeats end in the background until the hold is gone.
func (s *shared) takeBack(in ask.Doubt, granted bool, end ending) {
	in.TakeBack(s.undo.Start, s.opts.Lease, granted, func() (found bool, err error) {
		n, _, err := end(context.Background())
		return n >= lapsed, err
	})
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func number(n int64) string { return strconv.FormatInt(n, 10) }

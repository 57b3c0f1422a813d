package lock

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/neap-go/neap/core/internal/undo"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

var (
	acquireScript = script.New("lock_acquire.lua", lua.LockAcquire)
	extendScript  = script.New("lock_extend.lua", lua.LockExtend)
	releaseScript = script.New("lock_release.lua", lua.LockRelease)
	forceScript   = script.New("lock_force.lua", lua.LockForce)
	inspectScript = script.New("lock_inspect.lua", lua.LockInspect)
	startScript   = script.New("once_start.lua", lua.OnceStart)
	endScript     = script.New("once_end.lua", lua.OnceEnd)

	errReply = errors.New("the reply is not about a lock: is the client really connected to Redis?")
)

// What the scripts answer about a hold where they do not say yes.
const (
	lapsed = 0
	taken  = -1
	ended  = -3 // by an earlier call, since nobody else knows the hold
)

// ask runs a script whose reply is a number. A call whose reply is lost is made
// again, which all of these scripts allow, as long as half of the budget is
// left. asked is when the one that was answered was, and in are those of which
// nobody knows whether they ran.
func (s *shared) ask(
	ctx context.Context, sc *script.Script, key string, args ...any,
) (n int64, asked time.Time, in doubt, err error) {
	began := time.Now()
	for again := again; ; again *= 2 {
		asked = time.Now()
		var reply any
		reply, err = s.run.Run(ctx, sc, []string{key}, args...)
		switch {
		case err == nil:
			n, ok := reply.(int64)
			if reply == "late" {
				return 0, asked, in, ErrLate
			}
			if !ok {
				err = &script.Error{Script: sc.Name(), Class: script.ErrFailed, Err: errReply}
			}
			return n, asked, in, err
		case isCallers(err):
			in.add(doubt{asked, 1})
			return 0, asked, in, err
		case !errors.Is(err, script.ErrMaybeExecuted):
			return 0, asked, in, err
		}
		in.add(doubt{asked, 1})
		if time.Since(began)+again >= s.opts.Budget/2 || !pause(ctx, again) {
			return 0, asked, in, err
		}
	}
}

// doubt is how many calls went without an answer, and when the last was made.
type doubt struct {
	last  time.Time
	calls int
}

func (d *doubt) add(more doubt) {
	if more.calls > 0 {
		d.last, d.calls = more.last, d.calls+more.calls
	}
}

// again is how long after the first lost reply the question is put again.
const again = time.Millisecond

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// isCallers says of an error that it is the end of the caller's own context.
func isCallers(err error) bool {
	_, ok := errors.AsType[*script.Error](err)
	return !ok
}

// ending ends a hold; doubted says that an earlier call may have ended it.
type ending func(ctx context.Context) (n int64, doubted bool, err error)

func (b *bid) ending(s *shared, fence int64, how conclusion) ending {
	if b.run != nil && how == failed {
		how = b.run.without()
	}
	return func(ctx context.Context) (int64, bool, error) {
		sc, args := releaseScript, []any{b.hold, number(fence)}
		if b.run != nil {
			sc, args = endScript, append(args, string(how))
		}
		n, _, in, err := s.ask(ctx, sc, b.key, args...)
		return n, in.calls > 0, err
	}
}

// verdict is what a script's answer says about a hold.
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

// takeBack goes on ending a hold until it is gone. Of one that was granted for
// sure, that it is not there is proof enough; each call in doubt may yet grant
// what was found and ended before.
func (s *shared) takeBack(in doubt, granted bool, end ending) {
	found := 0
	s.undo.Start(in.last, s.opts.TTL, func() undo.Result {
		n, _, err := end(context.Background())
		switch {
		case errors.Is(err, script.ErrNotExecuted), errors.Is(err, script.ErrMaybeExecuted):
			return undo.Unanswered
		case err == nil && granted:
			return undo.Done
		case err == nil && n >= lapsed:
			if found++; found < in.calls {
				return undo.Found
			}
			return undo.Done
		}
		return undo.Absent
	})
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func number(n int64) string { return strconv.FormatInt(n, 10) }

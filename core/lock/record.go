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
// left. doubt is when the last call was made of which nobody knows whether it
// ran; asked is when the one that was answered was.
func (s *shared) ask(
	ctx context.Context, sc *script.Script, key string, args ...any,
) (n int64, asked, doubt time.Time, err error) {
	began := time.Now()
	for {
		asked = time.Now()
		var reply any
		reply, err = s.run.Run(ctx, sc, []string{key}, args...)
		switch {
		case err == nil:
			n, ok := reply.(int64)
			if reply == "late" {
				return 0, asked, doubt, ErrLate
			}
			if !ok {
				err = &script.Error{Script: sc.Name(), Class: script.ErrFailed, Err: errReply}
			}
			return n, asked, doubt, err
		case isCallers(err):
			return 0, asked, asked, err
		case !errors.Is(err, script.ErrMaybeExecuted):
			return 0, asked, doubt, err
		}
		doubt = asked
		if time.Since(began)+again >= s.opts.Budget/2 || !pause(ctx, again) {
			return 0, asked, doubt, err
		}
	}
}

// again is how long after a lost reply the question is put again.
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
		n, _, doubt, err := s.ask(ctx, sc, b.key, args...)
		return n, !doubt.IsZero(), err
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
// sure, that it is not there is proof enough.
func (s *shared) takeBack(asked time.Time, granted bool, end ending) {
	s.undo.Start(asked, s.opts.TTL, func() undo.Result {
		n, _, err := end(context.Background())
		switch {
		case errors.Is(err, script.ErrNotExecuted), errors.Is(err, script.ErrMaybeExecuted):
			return undo.Unanswered
		case err == nil && (n >= lapsed || granted):
			return undo.Done
		}
		return undo.Absent
	})
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func number(n int64) string { return strconv.FormatInt(n, 10) }

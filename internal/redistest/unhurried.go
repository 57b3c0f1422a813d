package redistest

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Embedded is an unhurried client of a miniredis of its own, which lasts as long
// as the process. It is for examples in the documentation, which have no test.
func Embedded() *redis.Client {
	m, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	m.ClockTTL(true)
	return Unhurried(&redis.Options{Addr: m.Addr()})
}

// Unhurried makes a client whose calls wait up to a minute for a connection and for
// their reply, whatever their budget is. It loads a script that the server lacks, because
// the budget may be over when the library learns that; in a pipeline it loads none. It is
// for tests of code that keeps the default budgets, such as what the README shows: there
// a busy machine must not decide. A server that stops ends the call at once; a server
// that is paused does not.
//
// A store sends the call after a slow one through its queue, which keeps to the budget:
// there a test needs a long Budget, too.
func Unhurried(o *redis.Options) *redis.Client {
	o.ContextTimeoutEnabled = true // a call waits for the client alone
	o.DialTimeout, o.PoolTimeout, o.ReadTimeout, o.WriteTimeout = time.Minute, time.Minute, time.Minute, time.Minute
	rdb := redis.NewClient(o)
	rdb.AddHook(endless{})
	return rdb
}

// endless is a hook that keeps the end of a call's context from the client.
type endless struct{}

func (endless) DialHook(next redis.DialHook) redis.DialHook { return next }

func (endless) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		ctx = context.WithoutCancel(ctx)
		err := next(ctx, cmd)
		if !redis.HasErrorPrefix(err, "NOSCRIPT") {
			return err
		}
		source, is := scripts()[fmt.Sprint(cmd.Args()[1])]
		if !is {
			return err
		}
		if err := next(ctx, redis.NewStringCmd(ctx, "script", "load", source)); err != nil {
			return err
		}
		cmd.SetErr(nil)
		return next(ctx, cmd)
	}
}

func (endless) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { return next(context.WithoutCancel(ctx), cmds) }
}

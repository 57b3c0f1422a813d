package script

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/call"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/internal/wire"
)

// Load loads the scripts into Redis, on every node of a cluster, so that no later call
// sends their text. It also loads the scripts by which their calls are merged. It costs
// one round trip for each script. It has no budget: it ends with ctx, whatever the
// client's own time-outs are. The errors are those of [Runner.Run].
//
// A replica of a cluster that does not load them is no error, and takes 200 ms at most:
// no call reaches it before it is a master, and then the first calls load the scripts.
//
// If the client has no ScriptLoad method, Load does nothing. The first calls then load
// the scripts.
func (r *Runner) Load(ctx context.Context, scripts ...*Script) error {
	misuse.Context(ctx)
	if r == nil || r.rdb == nil {
		return &Error{Class: ErrConfiguration, Err: errRunner}
	}
	all := slices.Clone(scripts)
	for _, s := range scripts {
		if !(*wire.Script)(s).Made() {
			return &Error{Class: ErrConfiguration, Err: errScript}
		}
		if by := (*wire.Script)(s).Merging(); by != nil {
			all = append(all, (*Script)(by.Script))
		}
	}
	if len(all) == 0 {
		return ctx.Err()
	}
	switch client := r.rdb.(type) {
	case cluster:
		into := func(ctx context.Context, node *redis.Client) error { return load(ctx, node, all) }
		if err := within(ctx, all[0].Name(), func() error { return client.ForEachMaster(ctx, into) }); err != nil {
			return err
		}
		brief, cancel := context.WithTimeout(ctx, replicasTime)
		defer cancel()
		_ = within(brief, all[0].Name(), func() error { return client.ForEachSlave(brief, into) })
		return nil
	case loader:
		return load(ctx, client, all)
	}
	return ctx.Err()
}

// replicasTime is how long the replicas of a cluster may take to load scripts.
const replicasTime = 200 * time.Millisecond

type loader interface {
	ScriptLoad(ctx context.Context, script string) *redis.StringCmd
}

type cluster interface {
	ForEachMaster(ctx context.Context, fn func(ctx context.Context, node *redis.Client) error) error
	ForEachSlave(ctx context.Context, fn func(ctx context.Context, node *redis.Client) error) error
}

func load(ctx context.Context, client loader, scripts []*Script) error {
	for _, s := range scripts {
		if err := within(ctx, s.Name(), func() error { return client.ScriptLoad(ctx, s.Source()).Err() }); err != nil {
			return err
		}
	}
	return nil
}

// within waits for f until ctx ends: a client may take longer. Its error is that of ctx,
// if it has ended, or else an [*Error].
func within(ctx context.Context, name string, f func() error) error {
	select {
	case err := <-background.Start(f):
		switch _, is := errors.AsType[*Error](err); {
		case err == nil:
			return nil
		case call.Ended(ctx) != nil:
			return call.Ended(ctx)
		case is:
			return err
		}
		return &Error{Script: name, Class: (*wire.Script)(nil).Classify(err, false).Class, Err: err}
	case <-ctx.Done():
		return ctx.Err()
	}
}

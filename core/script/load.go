package script

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/misuse"
)

// Load loads the scripts into Redis, on every node of a cluster, so that no later call
// sends their text. It also loads the scripts by which their calls are merged. It costs
// one round trip for each script. It has no budget: it ends with ctx, whatever the
// client's own time-outs are. The errors are those of [Runner.Run].
//
// If the client has no ScriptLoad method, Load does nothing. The first calls then load
// the scripts.
func (r *Runner) Load(ctx context.Context, scripts ...*Script) error {
	misuse.Context(ctx)
	if r == nil || r.rdb == nil {
		return &Error{Class: ErrConfiguration, Err: errRunner}
	}
	client, ok := r.rdb.(interface {
		ScriptLoad(ctx context.Context, script string) *redis.StringCmd
	})
	if !ok {
		return ctx.Err()
	}
	all := slices.Clone(scripts)
	for _, s := range scripts {
		if s == nil || s.sha == nil {
			return &Error{Class: ErrConfiguration, Err: errScript}
		}
		if s.merging != nil {
			all = append(all, s.merging.Script)
		}
	}
	for _, s := range all {
		done := make(chan error, 1)
		background.Go(func() {
			done <- background.Try(func() error { return client.ScriptLoad(ctx, s.Source()).Err() })
		})
		var err error
		select {
		case err = <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err != nil && ended(ctx) != nil {
			return ended(ctx)
		}
		if err != nil {
			class, _ := classify(err, false)
			return &Error{Script: s.name, Class: class, Err: err}
		}
	}
	return nil
}

package script

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/misuse"
)

// Load has Redis, or every node of the cluster, learn the scripts, and those that their
// calls are merged by, so that no later call sends their text. It costs a round trip a script and ends with
// ctx, whatever the client's own timeouts are; it has no budget. The errors
// are those of [Runner.Run].
//
// A client without a ScriptLoad of its own learns them by its first calls:
// Load then does nothing.
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
		go func() { done <- client.ScriptLoad(ctx, s.Source()).Err() }()
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

package ask

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// warmBudget is the budget of a Warm whose context has no deadline.
const warmBudget = 10 * time.Second

// Warm connects to Redis, loads the scripts, and asks a question that changes nothing, to
// find out whether the Redis user may run them. Only the question decides, whatever Redis
// answers to SCRIPT LOAD: a call that finds its script missing sends the text. So it is an
// error if a server does not answer, or if the first request would not be answered either.
func Warm(
	ctx context.Context, st *store.Store, question func(ctx context.Context, run *Runner) error, scripts ...*script.Script,
) error {
	misuse.Context(ctx)
	deadline, has := ctx.Deadline()
	if !has {
		deadline = time.Now().Add(warmBudget)
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	loads, err := script.NewRunner(st, nil)
	if err != nil {
		return err
	}
	why := diagnose(ctx, st)
	err = loads.Load(ctx, scripts...)
	if _, replied := errors.AsType[redis.Error](err); err == nil || replied {
		in, _ := inside.Of(st)
		err = question(ctx, &Runner{in, time.Until(deadline)})
	}
	return why(err)
}

// diagnoseAfter is the longest time that a Warm takes if nothing is wrong.
const diagnoseAfter = 200 * time.Millisecond

// diagnose finds out what is wrong with a store while a Warm takes long, or when it fails,
// so that the error can name it. The client only knows that it had no answer, or how a
// connection ended.
func diagnose(ctx context.Context, st *store.Store) (why func(error) error) {
	ctx, cancel := context.WithCancel(ctx)
	found := make(chan error, 1)
	timer := background.AfterFunc(diagnoseAfter, func() { found <- st.Diagnose(ctx) })
	return func(err error) error {
		defer cancel()
		early := timer.Stop()
		if err == nil || errors.Is(err, script.ErrConfiguration) || errors.Is(err, script.ErrFailed) {
			return err
		}
		if early {
			found <- st.Diagnose(ctx)
		}
		select {
		case cause := <-found:
			if cause != nil && !errors.Is(cause, ctx.Err()) && !strings.HasSuffix(err.Error(), cause.Error()) {
				return fmt.Errorf("%w: %w", err, cause)
			}
		case <-ctx.Done():
		}
		return err
	}
}

// About returns the question that runs a script with a key and no arguments.
func About(sc *script.Script, key string) func(ctx context.Context, run *Runner) error {
	return func(ctx context.Context, run *Runner) error {
		_, err := run.Run(ctx, sc, []string{key})
		return err
	}
}

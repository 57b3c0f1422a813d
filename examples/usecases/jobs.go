package usecases

import (
	"context"
	"log/slog"
	"time"

	"github.com/neap-go/neap/core/lock"
)

// RunReports runs report once at each tick, in one of all processes that call it, until
// ctx ends.
func RunReports(ctx context.Context, jobs *lock.Locker, every time.Duration, report func(context.Context) error) error {
	tick := time.Now().Truncate(every) // the same instants in every process
	for {
		tick = tick.Add(every) // computed before the sleep
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(tick)):
		}
		until, cancel := context.WithTimeout(ctx, every+10*time.Second) // for a lease, then the run
		if _, err := jobs.Once(until, "report", tick, lock.Again, report); err != nil && ctx.Err() == nil {
			slog.ErrorContext(ctx, "this process knows of no completed report", "tick", tick, "err", err)
		}
		cancel()
	}
}

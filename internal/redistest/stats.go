package redistest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Stat is what a server counts of one command.
type Stat struct {
	Calls int64
	Usec  int64 // time in the command, all calls together
}

// Asked names the commands that the server has seen since [ResetStats], but for
// what counting them takes.
func Asked(tb testing.TB, client redis.UniversalClient) []string {
	tb.Helper()
	stats := CommandStats(tb, client)
	for _, counting := range []string{"info", "config", "config|resetstat"} {
		delete(stats, counting)
	}
	return slices.Sorted(maps.Keys(stats))
}

// CommandStats is the server's count of each command since its start or
// [ResetStats], by its name in lower case, summed over the masters of a
// cluster. What scripts call is counted too, and so is an EVALSHA that failed
// with NOSCRIPT. miniredis does not count.
func CommandStats(tb testing.TB, client redis.UniversalClient) map[string]Stat {
	tb.Helper()
	stats := map[string]Stat{}
	err := eachMaster(tb.Context(), client, func(ctx context.Context, rdb redis.Cmdable) error {
		info, err := rdb.Info(ctx, "commandstats").Result()
		if err != nil {
			return err
		}
		for line := range strings.Lines(info) {
			name, values, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":")
			if !ok {
				continue
			}
			var one Stat
			if _, err := fmt.Sscanf(values, "calls=%d,usec=%d,", &one.Calls, &one.Usec); err != nil {
				return fmt.Errorf("%q: %w", line, err)
			}
			sum := stats[name]
			stats[name] = Stat{sum.Calls + one.Calls, sum.Usec + one.Usec}
		}
		return nil
	})
	if err != nil {
		tb.Fatalf("redistest: commandstats: %v", err)
	}
	return stats
}

// Connections is how many connections a client has, those for pipelines among them.
func Connections(rdb *redis.Client) int {
	stats := rdb.PoolStats()
	n := int(stats.TotalConns)
	if stats.PipelineStats != nil {
		n += int(stats.PipelineStats.TotalConns)
	}
	return n
}

// ResetStats sets the server's counts to zero, on every master of a cluster.
func ResetStats(tb testing.TB, client redis.UniversalClient) {
	tb.Helper()
	err := eachMaster(tb.Context(), client, func(ctx context.Context, rdb redis.Cmdable) error {
		return rdb.ConfigResetStat(ctx).Err()
	})
	if err != nil {
		tb.Fatalf("redistest: resetting commandstats: %v", err)
	}
}

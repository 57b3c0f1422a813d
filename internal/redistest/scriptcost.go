package redistest

import (
	"math"
	"testing"

	"github.com/redis/go-redis/v9"
)

// ScriptCost is the time that a server spends in calls, as a multiple of EVALSHA of `return 1` with one
// key and one argument: each the best of some pipelines, which alternate. A call is the words of an EVALSHA; several for one i
// count together.
func ScriptCost(b *testing.B, rdb *redis.Client, calls func(i int) [][]any) float64 {
	b.Helper()
	ctx := b.Context()
	sha, err := rdb.ScriptLoad(ctx, "return 1").Result()
	if err != nil {
		b.Fatal(err)
	}
	const rounds, each = 250, 200
	n := 0
	best := func(before float64, calls func(i int) [][]any) float64 {
		ResetStats(b, rdb)
		pipe := rdb.Pipeline()
		for range each {
			for _, words := range calls(n) {
				pipe.Do(ctx, words...)
			}
			n++
		}
		if _, err := pipe.Exec(ctx); err != nil {
			b.Fatal(err)
		}
		return min(before, float64(CommandStats(b, rdb)["evalsha"].Usec)/each)
	}
	floor, cost := math.Inf(1), math.Inf(1)
	for range rounds {
		floor = best(floor, func(int) [][]any { return [][]any{{"evalsha", sha, "1", "neap:floor:{s}", "1"}} })
		cost = best(cost, calls)
	}
	return cost / floor
}

// Package guide holds the code that docs/guide shows: the usual forms, which
// everybody begins with, and neap's beside them. Its tests have the usual ones
// fail.
package guide

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
)

//go:embed count.lua
var countLua string

// VisitBySprintf has a text of its own for every page and number.
func VisitBySprintf(ctx context.Context, rdb redis.Scripter, key string, visits int) error {
	text := fmt.Sprintf("return redis.call('INCRBY', '%s', %d)", key, visits)
	return rdb.Eval(ctx, text, nil).Err()
}

// VisitBySHA knows what the server called the script at the program's start.
func VisitBySHA(ctx context.Context, rdb redis.Scripter, sha, key string, visits int) error {
	return rdb.EvalSha(ctx, sha, []string{key}, visits, 60_000).Err()
}

var count = script.New("count.lua", countLua)

// Visit counts visits, and says how many there were in this minute.
func Visit(ctx context.Context, runner *script.Runner, key string, visits int) (total int64, err error) {
	reply, err := runner.Run(ctx, count, []string{key}, visits, 60_000)
	if err != nil {
		return 0, err
	}
	return total, count.Decode(reply, &total)
}

// Package guide holds the code that docs/guide shows: the usual forms, with which
// everybody begins, and neap's forms beside them. Its tests show where the usual
// forms fail.
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

// VisitBySprintf sends another script text for every page and number.
func VisitBySprintf(ctx context.Context, rdb redis.Scripter, key string, visits int) error {
	text := fmt.Sprintf("return redis.call('INCRBY', '%s', %d)", key, visits)
	return rdb.Eval(ctx, text, nil).Err()
}

// VisitBySHA sends only the SHA that the server gave the script when the program
// started.
func VisitBySHA(ctx context.Context, rdb redis.Scripter, sha, key string, visits int) error {
	return rdb.EvalSha(ctx, sha, []string{key}, visits, 60_000).Err()
}

var count = script.New("count.lua", countLua)

// Visit counts visits, and returns how many there were in this minute.
func Visit(ctx context.Context, runner *script.Runner, key string, visits int) (total int64, err error) {
	reply, err := runner.Run(ctx, count, []string{key}, visits, 60_000)
	if err != nil {
		return 0, err
	}
	err = count.Decode(reply, &total)
	return total, err
}

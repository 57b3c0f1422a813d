package main

import (
	"context"
	"time"
)

// What every endpoint answers, to GET and HEAD, when all is well.
const (
	body        = "ok\n"
	contentType = "text/plain; charset=utf-8"
)

// longest is how long a request to /inflight may take.
const longest = 10 * time.Second

// work is what an endpoint does with a request that is let through.
type work func(ctx context.Context, rawQuery string) (status int, text string)

func ok(context.Context, string) (status int, text string) { return 200, body }

// login is right or wrong as the query says.
func login(_ context.Context, rawQuery string) (status int, text string) {
	if right, _ := number(rawQuery, "ok", 0, 1); right == 1 {
		return 200, body
	}
	return 401, "wrong password\n"
}

// takeTime takes as many milliseconds as the query says, or until the client
// goes away, which Fiber does not tell.
func takeTime(ctx context.Context, rawQuery string) (status int, text string) {
	ms, _ := number(rawQuery, "ms", 0, longest.Milliseconds())
	_ = sleep(ctx, time.Duration(ms)*time.Millisecond)
	return 200, body
}

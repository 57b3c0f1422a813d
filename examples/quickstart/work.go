package main

import (
	"context"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/lock"
)

// body is what every endpoint but one answers when all is well.
const body = "ok\n"

const (
	contentType = "text/plain; charset=utf-8"
	contentJSON = "application/json"
)

// longest is how long a request may ask to take.
const longest = 10 * time.Second

// work is what an endpoint does with a request that is let through.
type work func(ctx context.Context, rawQuery string) result

// result is what it answers.
type result struct {
	status      int
	contentType string
	text        string
}

func text(status int, s string) result { return result{status, contentType, s} }

func ok(context.Context, string) result { return text(200, body) }

// login is right or wrong as the query says.
func login(_ context.Context, rawQuery string) result {
	if right, _ := number(rawQuery, "ok", 0, 1); right == 1 {
		return text(200, body)
	}
	return text(401, "wrong password\n")
}

// takeTime takes as many milliseconds as the query says, or until the client
// goes away, which Fiber does not tell.
func takeTime(ctx context.Context, rawQuery string) result {
	_ = takes(ctx, rawQuery)
	return text(200, body)
}

// takeTurn takes its time alone, and answers the fence that it would write
// with. It ends early when its lock is lost.
func takeTurn(ctx context.Context, rawQuery string) result {
	held, found := lock.FromContext(ctx)
	if !found || takes(ctx, rawQuery) != nil {
		return text(503, "the lock was lost\n")
	}
	return result{200, contentJSON, fmt.Sprintf(`{"fence":%d}`, held.Fence())}
}

func takes(ctx context.Context, rawQuery string) error {
	ms, _ := number(rawQuery, "ms", 0, longest.Milliseconds())
	return sleep(ctx, time.Duration(ms)*time.Millisecond)
}

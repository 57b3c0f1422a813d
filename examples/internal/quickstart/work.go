package quickstart

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
)

// body is what every endpoint but one answers when all is well.
const body = "ok\n"

const (
	contentType    = "text/plain; charset=utf-8"
	contentJSON    = "application/json"
	contentProblem = "application/problem+json"
)

// longest is how long a request may ask to take.
const longest = 10 * time.Second

// Asked is what the work of a route may want to know of the request.
type Asked struct {
	Query string                 // as it was on the wire
	Body  func() ([]byte, error) // which the gate has bounded
}

// Result is what it answers.
type Result struct {
	Status      int
	ContentType string
	Text        string
	Header      map[string]string // further fields
}

func text(status int, s string) Result {
	return Result{Status: status, ContentType: contentType, Text: s}
}

// page is a result in JSON.
func page(status int, value any) Result {
	body, err := json.Marshal(value)
	if err != nil {
		return text(500, "the answer cannot be written\n")
	}
	return Result{Status: status, ContentType: contentJSON, Text: string(body) + "\n"}
}

func ok(context.Context, Asked) Result { return text(200, body) }

// login is right or wrong as the query says.
func login(_ context.Context, r Asked) Result {
	if right, _ := number(r.Query, "ok", 0, 1); right == 1 {
		return text(200, body)
	}
	return text(401, "wrong password\n")
}

// useTokens settles the estimate that was taken to what the query says was used, and answers what
// is left then.
func useTokens(ctx context.Context, r Asked) Result {
	d, found := limit.FromContext(ctx)
	used, asked := number(r.Query, "used", 0, mostTokens)
	if !found || !asked {
		return text(500, "the estimate was not taken\n")
	}
	settled, err := d.Settle(ctx, used)
	if err != nil {
		return text(503, "the estimate could not be settled\n")
	}
	return page(200, map[string]int64{"remaining": settled.After.Remaining})
}

// takeTime takes as many milliseconds as the query says, or until the client
// goes away, which Fiber does not tell.
func takeTime(ctx context.Context, r Asked) Result {
	_ = takes(ctx, r.Query)
	return text(200, body)
}

// takeTurn takes its time alone, and answers the fence that it would write
// with. It ends early when its lock is lost.
func takeTurn(ctx context.Context, r Asked) Result {
	held, found := lock.FromContext(ctx)
	if !found || takes(ctx, r.Query) != nil {
		return text(503, "the lock was lost\n")
	}
	return page(200, map[string]int64{"fence": held.Fence()})
}

// book answers with an order of its own, and with a cookie for this one client.
// It ends early when its claim is lost.
func book(ctx context.Context, r Asked) Result {
	posted, err := r.Body()
	switch {
	case err != nil || !json.Valid(posted):
		return text(400, "the body is not JSON\n")
	case takes(ctx, r.Query) != nil:
		return text(503, "the claim was lost\n")
	}
	id := strings.ToLower(rand.Text())
	return Result{
		Status: 201, ContentType: contentJSON,
		Text: fmt.Sprintf(`{"id":%q,"order":%s}`, id, bytes.TrimSpace(posted)),
		Header: map[string]string{
			"Location":   "/orders/" + id,
			"Set-Cookie": "session=" + rand.Text() + "; HttpOnly",
		},
	}
}

func takes(ctx context.Context, rawQuery string) error {
	ms, _ := number(rawQuery, "ms", 0, longest.Milliseconds())
	return sleep(ctx, time.Duration(ms)*time.Millisecond)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

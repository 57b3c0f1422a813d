package main

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/lua"
)

// scriptOf prints a script of a limiter. It asks no Redis.
type scriptOf struct {
	Policies  []string `arg:"" name:"policy" help:"The limiter's policies, such as 'bucket 10/1s burst 20'."`
	Holds     bool     `help:"The limiter has limit.Options.Holds."`
	Overrides bool     `help:"The limiter has limit.Options.Overrides."`
	For       string   `enum:"decision,merged,settlement" default:"decision" help:"Which script: decision, merged (the decisions of several callers), or settlement (Settle and Refund)."`
}

func (s *scriptOf) Run(ctx context.Context, a *app) error {
	var policies []limit.Policy
	for _, text := range s.Policies {
		p, err := readPolicy(text)
		if err != nil {
			return err
		}
		policies = append(policies, p.Policy)
	}
	loaded := &loads{}
	client := redis.NewClient(&redis.Options{ContextTimeoutEnabled: true})
	client.AddHook(loaded)
	a.keep(client)
	l, err := limit.New(client, "script", policies, &limit.Options{Holds: s.Holds, Overrides: s.Overrides})
	if err != nil {
		return usage(err)
	}
	_ = l.Warm(ctx) // it loads the scripts, and then nothing answers
	begins := map[string]string{"merged": "limit_take(", "settlement": "limit_settle("}[s.For]
	for _, text := range loaded.texts {
		if begins == "" || strings.HasPrefix(nameOf(text), begins) {
			_, err := io.WriteString(a.out, text)
			return err
		}
	}
	return usagef("a limiter of %s has no script for %s", strings.Join(s.Policies, ", "), s.For)
}

// nameOf returns the name of a script that was joined.
func nameOf(text string) string {
	for _, j := range lua.Made() {
		if j.Text == text {
			return j.Name
		}
	}
	return ""
}

// loads is a hook that keeps the scripts which a client is to load, and refuses all else.
type loads struct {
	mu    sync.Mutex
	texts []string
}

type noServerError struct{}

func (noServerError) Error() string { return "NOPERM there is no server" }
func (noServerError) RedisError()   {}

func (l *loads) DialHook(redis.DialHook) redis.DialHook {
	return func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("there is no server") }
}

func (l *loads) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "script" {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.texts = append(l.texts, cmd.Args()[2].(string))
			return nil
		}
		cmd.SetErr(noServerError{})
		return noServerError{}
	}
}

func (l *loads) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, all []redis.Cmder) error {
		for _, cmd := range all {
			cmd.SetErr(noServerError{})
		}
		return noServerError{}
	}
}

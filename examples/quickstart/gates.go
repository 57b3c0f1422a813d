package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
)

// endpoint is a route as a framework serves it.
type endpoint struct {
	path string
	gate gate.Gate
}

// guard makes the gates of the routes, with their keys under prefix.
func guard(rdb script.Client, prefix string, budget time.Duration, routes []route) ([]endpoint, error) {
	endpoints := make([]endpoint, len(routes))
	for i, r := range routes {
		endpoints[i] = endpoint{path: r.path, gate: unlimited{}}
		if len(r.policies) == 0 {
			continue
		}
		limiter, err := limit.New(rdb, r.name(), r.policies, &limit.Options{Prefix: prefix, Budget: budget})
		if err != nil {
			return nil, err
		}
		endpoints[i].gate = gate.RateLimit(limiter, r.key, &gate.RateLimitOptions{
			Cost:    r.cost,
			OnError: report(slog.Default()),
		})
	}
	return endpoints, nil
}

// unlimited lets everything pass.
type unlimited struct{}

func (unlimited) Enter(gate.Request) gate.Pass { return gate.Pass{} }

// name is the path's fixed part in characters that a limiter's name may have.
func (r route) name() string {
	fixed, _, _ := strings.Cut(r.path, "/{")
	return strings.ReplaceAll(strings.TrimPrefix(fixed, "/"), "/", "-")
}

// report logs what kind of error it was: its text may name keys and addresses.
func report(log *slog.Logger) func(gate.Request, error) {
	return func(r gate.Request, err error) {
		log.Error("a request was not decided as it should be", "route", r.Route(), "why", kind(err))
	}
}

func kind(err error) string {
	for _, known := range []error{
		script.ErrNotExecuted, script.ErrMaybeExecuted, script.ErrConfiguration, script.ErrFailed,
		gate.ErrWiring, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "another error"
}

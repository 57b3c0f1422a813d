package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/neap-go/neap/examples/internal/host"
)

// framework makes a server of the endpoints.
type framework struct {
	name  string // as -framework takes it
	title string
	serve func([]endpoint) host.Server
}

var frameworks = []framework{
	{name: "nethttp", title: "net/http", serve: newNetHTTP},
	{name: "gin", title: "Gin", serve: newGin},
	{name: "echo", title: "Echo", serve: newEcho},
	{name: "fiber", title: "Fiber", serve: newFiber},
}

func frameworkNames() []string {
	names := make([]string, len(frameworks))
	for i, f := range frameworks {
		names[i] = f.name
	}
	return names
}

// listen serves the endpoints by a framework.
func listen(ctx context.Context, f framework, addr string, endpoints []endpoint) (*host.Host, error) {
	h, err := host.Listen(ctx, addr, f.serve(endpoints))
	if err != nil {
		return nil, fmt.Errorf("%w; choose another address with -addr", err)
	}
	return h, nil
}

// colons writes "/users/{id}" as "/users/:id".
func colons(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}

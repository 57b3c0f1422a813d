package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"
)

// framework makes a server of the endpoints.
type framework struct {
	name  string // as -framework takes it
	title string
	serve func([]endpoint) server
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

// server is what *http.Server has; fiberServer has it too.
type server interface {
	Serve(ln net.Listener) error
	Shutdown(ctx context.Context) error
}

func newHTTPServer(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
}

// colons writes "/users/{id}" as "/users/:id".
func colons(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}

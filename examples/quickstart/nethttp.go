package main

import (
	"io"
	"net/http"

	"github.com/neap-go/neap/nethttp"
)

func newNetHTTP(endpoints []endpoint) server {
	mux := http.NewServeMux()
	for _, e := range endpoints {
		mux.Handle("GET "+e.path, nethttp.Middleware(e.gate)(http.HandlerFunc(hello)))
	}
	return newHTTPServer(mux)
}

func hello(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", contentType)
	_, _ = io.WriteString(w, body)
}

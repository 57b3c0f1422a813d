package main

import (
	"io"
	"net/http"

	"github.com/neap-go/neap/nethttp"
)

func newNetHTTP(endpoints []endpoint) server {
	mux := http.NewServeMux()
	for _, e := range endpoints {
		mux.Handle("GET "+e.path, nethttp.Middleware(e.gate)(http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				status, text := e.work(r.Context(), r.URL.RawQuery)
				w.Header().Set("Content-Type", contentType)
				w.WriteHeader(status)
				_, _ = io.WriteString(w, text)
			})))
	}
	return newHTTPServer(mux)
}

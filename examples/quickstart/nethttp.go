package main

import (
	"io"
	"net/http"

	"github.com/neap-go/neap/examples/internal/host"
	"github.com/neap-go/neap/nethttp"
)

func newNetHTTP(endpoints []endpoint) host.Server {
	mux := http.NewServeMux()
	for _, e := range endpoints {
		h := nethttp.Middleware(e.gate)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := e.work(r.Context(), asked{r.URL.RawQuery, func() ([]byte, error) { return io.ReadAll(r.Body) }})
			for name, value := range answer.header {
				w.Header().Set(name, value)
			}
			w.Header().Set("Content-Type", answer.contentType)
			w.WriteHeader(answer.status)
			_, _ = io.WriteString(w, answer.text)
		}))
		for _, method := range e.methods {
			mux.Handle(method+" "+e.path, h)
		}
	}
	return host.HTTP(mux)
}
